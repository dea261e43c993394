//! Engines by themselves, each driven by its own clock.

use watershed_arith::{Contribution, Flags, Mode, Opcode, Quad, TreeCfg};
use watershed_armed as armed;
use watershed_fabric::routing::{Routes, Routing};
use watershed_fabric::topology::Mesh;
use watershed_fabric::{Flit, Join, JoinCx, QueueLengths, Tag};
use watershed_kernel::Cycle;
use watershed_pbv as pbv;
use watershed_piuma::{Ceng, CengCfg, OpSelect, REQUEST, RESPONSE, Registers, RegistersCfg};
use watershed_scenario_interface::simulator::{EngineOperation, SingleEngine};

use super::engines::AllEngines;

/// The registers of the only switch of a star: collective id 0 joins all ports, id 1 those of the last, smaller groups.
fn star(operation: EngineOperation, ports: u16, rest: u16) -> Result<Registers, String> {
    let EngineOperation { op, dtype, mode } = operation;
    let routing = Routing::Mesh(Mesh { size: vec![1], concentration: ports });
    let cfg = RegistersCfg { switches: 1, ids: 2, external_ports: ports };
    let mut registers = Registers::new(cfg, vec!["star".to_owned()], Routes { routing, ends: Vec::new() });
    let mut store = |address, value| registers.store(address, value).map_err(|error| error.to_string());
    for (id, members) in [(0, ports), (1, rest)] {
        store(Registers::select_address(0, id), OpSelect { op, dtype, mode }.encode())?;
        for port in 0..members {
            store(Registers::vector_address(0, id, REQUEST, port), 1 << ports)?;
        }
        // The result turns into a response here: the switch is the root.
        store(Registers::vector_address(0, id, RESPONSE, ports), 1)?;
    }
    Ok(registers)
}

impl SingleEngine for AllEngines {
    fn piuma_stream(
        &self,
        operation: EngineOperation,
        ports: u16,
        arrivals: Option<&[usize]>,
        groups: &[Vec<(u64, Flags)>],
    ) -> Result<Vec<(u64, Flags)>, String> {
        let rest = groups.last().map_or(0, Vec::len) as u16;
        let registers = star(operation, ports, rest)?;
        let tree = TreeCfg { radix: ports as u8, unit_stages: 3 };
        let result_slots = CengCfg::enough_result_slots(tree, 1);
        let mut ceng = Ceng::new(CengCfg { tree, operand_slots: 2, result_slots, scan_slots: 1 });

        let count = groups.len();
        let mut sent = vec![0; usize::from(ports)];
        let mut results = vec![(0, Flags::NONE); count];
        let mut finished = 0;
        let mut arriving = arrivals.unwrap_or_default().iter().copied().peekable();
        let limit = (groups.iter().map(Vec::len).sum::<usize>() as Cycle + 1000) * 20;
        for now in 0..limit {
            let put_flit = |ceng: &mut Ceng, group: usize, port: u16| {
                let (word, flags) = groups[group][usize::from(port)];
                let full = groups[group].len() == usize::from(ports);
                let mut tag = Tag(0);
                tag.set_head(true);
                tag.set_tail(true);
                tag.set_vc(REQUEST);
                tag.set_id(u16::from(!full));
                tag.set_seq(group as u64);
                tag.set_flags(flags.bits());
                ceng.put_flit(port, REQUEST, Flit { tag, word }, now + 1);
            };
            if arrivals.is_some() {
                if let Some(&place) = arriving.peek() {
                    let (group, port) = (place / usize::from(ports), (place % usize::from(ports)) as u16);
                    if ceng.has_room(port, REQUEST) {
                        put_flit(&mut ceng, group, port);
                        arriving.next();
                    }
                }
            } else {
                for port in 0..ports {
                    let group = sent[usize::from(port)];
                    if group < count && usize::from(port) < groups[group].len() && ceng.has_room(port, REQUEST) {
                        put_flit(&mut ceng, group, port);
                        sent[usize::from(port)] += 1;
                    }
                }
            }
            let out = ceng.tick(&JoinCx { tables: &registers, switch: 0, now, queued: QueueLengths::default() });
            if let Some(fault) = out.fault {
                return Err(fault.into());
            }
            if let Some(flit) = out.result {
                results[flit.tag.seq() as usize] = (flit.word, Flags::from_bits(flit.tag.flags()));
                finished += 1;
            }
            if finished == count {
                return Ok(results);
            }
        }
        Err(format!("the engine did not finish in {limit} cycles"))
    }

    fn armed_frame(&self, opcode: &Opcode, mode: Mode, contributions: &[Contribution]) -> Result<Contribution, String> {
        let frame = |Contribution { quad, count }: &Contribution| {
            let with = armed::Contribution::of(quad.lanes);
            armed::Contribution { count: *count, rc: quad.code, m: quad.m, oflow_id: quad.oflow_id, ..with }
        };
        let frames: Vec<armed::Contribution> = contributions.iter().map(frame).collect();
        let outcome =
            armed::reduce_with(&armed::EngineCfg { mode, ..armed::EngineCfg::default() }, opcode, &frames, None, 0);
        let only = outcome
            .single()
            .ok_or_else(|| format!("the engine sent {} frames up instead of one", outcome.frames.len()))?;
        let quad = Quad { code: only.rc, m: only.m, oflow_id: only.oflow_id, ..Quad::of(only.lanes) };
        Ok(Contribution { quad, count: only.count })
    }

    fn pbv_packet(
        &self,
        operation: EngineOperation,
        in_order: bool,
        contributions: &[(Vec<u64>, Flags)],
    ) -> Result<(Vec<u64>, Flags), String> {
        let EngineOperation { op, dtype, mode } = operation;
        pbv::reduce::reduce(op, dtype, mode, in_order, contributions)
    }
}
