//! Static timing of a netlist of library cells, as `make synth` records it.
//!
//! Yosys maps a module to a few cells of Nangate45 whose areas, capacitances and delays stand in `nangate45.csv`; what ABC prints of
//! delays is lost in the registry's build of Yosys, so the netlist is read here. A gate's delay is a straight line over its load.
//! *Chosen:* a wire has 10 um a sink of metal 3 (0.104 fF a um, `setRC.tcl` of OpenROAD's platform); a load above 16 fF is driven by
//! a tree of BUF_X4 of 64 fF each, whose area counts; inputs come from a DFFR_X1, outputs go into one. Clock and reset are ideal.
//! No placement, no sizing of gates: what a physical design reaches differs, and configurations compare.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

/// Capacitance of the wire to a sink, in fF.
const WIRE_FF: f64 = 10.0 * 0.104;
/// Load that a gate drives itself, in fF.
const GATE_FF: f64 = 16.0;
/// Load of a buffer, in fF.
const BUFFER_FF: f64 = 64.0;

/// A cell of the library.
#[derive(Clone, Debug)]
pub struct Cell {
    pub area: f64,
    output: String,
    /// What the output is, in Liberty's words; of a flip-flop what clears or sets it. Empty: not for mapping, or neither.
    function: String,
    inputs: Vec<(String, f64)>,
    most: f64,
    intrinsic: f64,
    slope: f64,
    /// Of a flip-flop.
    setup: Option<f64>,
}

/// The cells by name.
pub type Library = BTreeMap<String, Cell>;

/// Reads the table of facts.
pub fn library(text: &str) -> Library {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    assert!(lines.next().is_some_and(|head| head.starts_with("cell,area_um2,output,function,inputs_ff")));
    let read = |line: &str| {
        let parts: Vec<&str> = line.split(',').collect();
        let number = |at: usize| parts[at].parse::<f64>().unwrap_or_else(|error| panic!("{line}: {error}"));
        let pin = |text: &str| {
            let (name, load) = text.split_once(':').expect("pin:load");
            (name.to_owned(), load.parse().expect("a load"))
        };
        let cell = Cell {
            area: number(1),
            output: parts[2].to_owned(),
            function: parts[3].to_owned(),
            inputs: parts[4].split(' ').map(pin).collect(),
            most: number(5),
            intrinsic: number(6),
            slope: number(7),
            setup: (!parts[8].is_empty()).then(|| number(8)),
        };
        (parts[0].to_owned(), cell)
    };
    lines.map(read).collect()
}

/// The cells as a Liberty file with tables of two by two, for Yosys and ABC.
pub fn liberty(library: &Library) -> String {
    let mut out = String::from(
        "library(facts) { delay_model : table_lookup; time_unit : \"1ps\"; capacitive_load_unit (1,ff); voltage_unit : \"1V\";\n \
         current_unit : \"1mA\"; pulling_resistance_unit : \"1kohm\"; leakage_power_unit : \"1nW\";\n lu_table_template(t) { \
         variable_1 : input_net_transition; variable_2 : total_output_net_capacitance;\n index_1(\"0,100\"); index_2(\"0,100\"); }\n",
    );
    for (name, cell) in library.iter().filter(|(_, cell)| cell.setup.is_some() || !cell.function.is_empty()) {
        let _ = writeln!(out, " cell({name}) {{ area : {};", cell.area);
        if cell.setup.is_some() {
            let what = if name == "DFFS_X1" { "preset" } else { "clear" };
            let ends =
                if cell.function.is_empty() { String::new() } else { format!("{what} : \"{}\";", cell.function) };
            let _ = writeln!(out, "  ff(IQ,IQN) {{ next_state : \"D\"; clocked_on : \"CK\"; {ends} }}");
            out += "  pin(Q) { direction : output; function : \"IQ\"; } pin(QN) { direction : output; function : \"IQN\"; }\n";
        }
        for (pin, load) in &cell.inputs {
            let clock = if pin == "CK" { "clock : true;" } else { "" };
            let _ = writeln!(out, "  pin({pin}) {{ direction : input; {clock} capacitance : {load}; }}");
        }
        if cell.setup.is_none() {
            let (output, function, most) = (&cell.output, &cell.function, cell.most);
            let _ = writeln!(
                out,
                "  pin({output}) {{ direction : output; function : \"{function}\"; max_capacitance : {most};"
            );
            let row = format!("\"{},{}\"", cell.intrinsic, cell.intrinsic + 100.0 * cell.slope);
            for (pin, _) in &cell.inputs {
                let tables = ["cell_rise", "cell_fall", "rise_transition", "fall_transition"];
                let tables = tables.map(|table| format!(" {table}(t) {{ values({row},{row}); }}")).concat();
                let _ = writeln!(out, "   timing() {{ related_pin : \"{pin}\";{tables} }}");
            }
            out += "  }\n";
        }
        out += " }\n";
    }
    out + "}\n"
}

/// What a module takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// Gates, without flip-flops and buffers.
    pub gates: u64,
    /// Area of gates and buffers, in um2.
    pub area: f64,
    /// Flip-flops.
    pub flip_flops: u64,
    /// The longest path, in gates.
    pub depth: u64,
    /// The shortest clock period, in ps.
    pub period: f64,
    /// Depth and period by stage, where the module is a pipeline without loops.
    pub stages: Vec<(u64, f64)>,
}

#[derive(Debug)]
struct Gate<'a> {
    cell: &'a Cell,
    inputs: Vec<usize>,
    output: usize,
    /// Of a flip-flop its data.
    data: usize,
}

/// A netlist: what drives each net, and what it loads it with.
struct Netlist<'a> {
    gates: Vec<Gate<'a>>,
    driver: Vec<Option<usize>>,
    /// A net that is another one.
    alias: Vec<Option<usize>>,
    load: Vec<f64>,
    outputs: Vec<usize>,
}

impl<'a> Netlist<'a> {
    fn read(library: &'a Library, blif: &str) -> Self {
        let mut names: HashMap<&str, usize> = HashMap::new();
        let mut list =
            Self { gates: Vec::new(), driver: Vec::new(), alias: Vec::new(), load: Vec::new(), outputs: Vec::new() };
        let mut lines = blif.lines().peekable();
        let mut outputs: Vec<&str> = Vec::new();
        let mut net = |name, list: &mut Self| {
            *names.entry(name).or_insert_with(|| {
                list.driver.push(None);
                list.alias.push(None);
                list.load.push(0.0);
                list.driver.len() - 1
            })
        };
        while let Some(line) = lines.next() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some(".outputs") => outputs.extend(words),
                Some(".names") => {
                    if let [from, to] = words.collect::<Vec<_>>()[..] {
                        assert_eq!(lines.next(), Some("1 1"), "{line}");
                        let (from, to) = (net(from, &mut list), net(to, &mut list));
                        list.alias[to] = Some(from);
                    }
                }
                Some(".subckt") => {
                    let name = words.next().expect("a cell");
                    let cell = library.get(name).unwrap_or_else(|| panic!("no cell {name}"));
                    let pins: HashMap<&str, &str> = words.filter_map(|word| word.split_once('=')).collect();
                    let mut gate = Gate { cell, inputs: Vec::new(), output: usize::MAX, data: usize::MAX };
                    for (pin, load) in &cell.inputs {
                        let at = net(pins[pin.as_str()], &mut list);
                        if cell.setup.is_none() || pin == "D" {
                            gate.inputs.push(at);
                            list.load[at] += load + WIRE_FF;
                        }
                    }
                    gate.data = gate.inputs[0];
                    let inverted = pins.get("QN").map(|name| net(name, &mut list));
                    let output = net(pins[cell.output.as_str()], &mut list);
                    gate.output = output;
                    for output in inverted.into_iter().chain([output]) {
                        assert!(list.driver[output].is_none(), "two drivers: {line}");
                        list.driver[output] = Some(list.gates.len());
                    }
                    list.gates.push(gate);
                }
                _ => {}
            }
        }
        let input_of_register = library["DFFR_X1"].inputs[0].1;
        for name in outputs {
            let at = net(name, &mut list);
            list.load[at] += input_of_register + WIRE_FF;
            list.outputs.push(at);
        }
        // What loads an alias loads what it stands for.
        for at in 0..list.load.len() {
            let root = list.root(at);
            if root != at {
                list.load[root] += list.load[at];
            }
        }
        list
    }

    fn root(&self, mut at: usize) -> usize {
        while let Some(next) = self.alias[at] {
            at = next;
        }
        at
    }

    /// From a driver to the sinks of a net: the delay, and the area of the buffers between.
    fn net(&self, library: &Library, cell: &Cell, at: usize) -> (f64, f64) {
        let buffer = &library["BUF_X4"];
        let (mut load, mut delay, mut area) = (self.load[at], 0.0, 0.0);
        while load > GATE_FF.min(cell.most) {
            let buffers = (load / BUFFER_FF).ceil();
            delay += buffer.intrinsic + buffer.slope * load / buffers;
            area += buffers * buffer.area;
            load = buffers * (buffer.inputs[0].1 + WIRE_FF);
        }
        (cell.intrinsic + cell.slope * load + delay, area)
    }

    /// Gates in an order in which each comes behind those that drive it.
    fn order(&self) -> Vec<usize> {
        let mut state = vec![0u8; self.gates.len()];
        let mut order = Vec::new();
        for start in (0..self.gates.len()).filter(|&gate| self.gates[gate].cell.setup.is_none()) {
            let mut stack = vec![(start, false)];
            while let Some((gate, done)) = stack.pop() {
                if done {
                    order.push(gate);
                    state[gate] = 2;
                } else if state[gate] == 0 {
                    state[gate] = 1;
                    stack.push((gate, true));
                    for &input in &self.gates[gate].inputs {
                        let before = self.driver[self.root(input)];
                        if let Some(before) = before.filter(|&at| self.gates[at].cell.setup.is_none()) {
                            assert_ne!(state[before], 1, "a loop of gates");
                            stack.push((before, false));
                        }
                    }
                }
            }
        }
        order
    }

    /// Of each flip-flop how many registers are on the longest way to it from the ports; `None` if there is a loop of several.
    fn ranks(&self) -> Option<HashMap<usize, usize>> {
        let registers: Vec<usize> =
            (0..self.gates.len()).filter(|&gate| self.gates[gate].cell.setup.is_some()).collect();
        let mut before: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut seen = vec![usize::MAX; self.gates.len()];
        for &register in &registers {
            let mut stack = vec![self.gates[register].data];
            let mut sources = Vec::new();
            while let Some(net) = stack.pop() {
                let Some(gate) = self.driver[self.root(net)] else { continue };
                if std::mem::replace(&mut seen[gate], register) == register {
                    continue;
                }
                match self.gates[gate].cell.setup {
                    Some(_) if gate != register => sources.push(gate),
                    Some(_) => {}
                    None => stack.extend(&self.gates[gate].inputs),
                }
            }
            before.insert(register, sources);
        }
        let mut ranks: HashMap<usize, usize> = HashMap::new();
        while ranks.len() < registers.len() {
            let known = ranks.len();
            for &register in &registers {
                if !ranks.contains_key(&register)
                    && let Some(most) = before[&register]
                        .iter()
                        .map(|at| ranks.get(at).copied())
                        .try_fold(0, |most, rank| Some(most.max(rank?)))
                {
                    ranks.insert(register, most + 1);
                }
            }
            if ranks.len() == known {
                return None;
            }
        }
        Some(ranks)
    }
}

/// What a netlist takes. `staged`: also by stage.
pub fn taken(library: &Library, blif: &str, staged: bool) -> Taken {
    let list = Netlist::read(library, blif);
    let register = &library["DFFR_X1"];
    let nets = list.load.len();
    // Nets start as ports and outputs of registers.
    let (mut arrival, mut depth, mut area) = (vec![0.0f64; nets], vec![0u64; nets], 0.0);
    for (net, arrival) in arrival.iter_mut().enumerate() {
        let cell = match list.driver[net] {
            Some(gate) if list.gates[gate].cell.setup.is_some() => list.gates[gate].cell,
            None if list.alias[net].is_none() => register,
            _ => continue,
        };
        let (delay, buffers) = list.net(library, cell, net);
        *arrival = delay;
        area += buffers;
    }
    for gate in list.order() {
        let gate = &list.gates[gate];
        let inputs = || gate.inputs.iter().map(|&input| list.root(input));
        let (delay, buffers) = list.net(library, gate.cell, gate.output);
        arrival[gate.output] = inputs().map(|input| arrival[input]).fold(0.0, f64::max) + delay;
        depth[gate.output] = inputs().map(|input| depth[input]).max().unwrap_or(0) + 1;
        area += buffers + gate.cell.area;
    }
    let mut taken = Taken { gates: 0, area, flip_flops: 0, depth: 0, period: 0.0, stages: Vec::new() };
    let ranks = if staged { list.ranks() } else { None }.unwrap_or_default();
    for (at, gate) in list.gates.iter().enumerate() {
        let Some(setup) = gate.cell.setup else {
            taken.gates += 1;
            continue;
        };
        taken.flip_flops += 1;
        let data = list.root(gate.data);
        let (gates, period) = (depth[data], arrival[data] + setup);
        taken.depth = taken.depth.max(gates);
        taken.period = taken.period.max(period);
        if let Some(&rank) = ranks.get(&at) {
            if taken.stages.len() < rank {
                taken.stages.resize(rank, (0, 0.0));
            }
            let stage = &mut taken.stages[rank - 1];
            *stage = (stage.0.max(gates), stage.1.max(period));
        }
    }
    for &output in &list.outputs {
        let output = list.root(output);
        taken.depth = taken.depth.max(depth[output]);
        taken.period = taken.period.max(arrival[output] + register.setup.expect("of a register"));
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells() -> Library {
        library(include_str!("nangate45.csv"))
    }

    #[test]
    fn a_path_through_two_gates_is_timed_by_hand() {
        let blif = ".model m\n.inputs a\n.outputs y\n.subckt NAND2_X1 A1=a A2=q ZN=n\n.subckt INV_X1 A=n ZN=d\n\
                    .subckt DFFR_X1 CK=clk D=d Q=q QN=free RN=rst\n.names q y\n1 1\n.end\n";
        let taken = taken(&cells(), blif, true);
        assert_eq!((taken.gates, taken.flip_flops, taken.depth), (2, 1, 2));
        assert!((taken.area - (0.798 + 0.532)).abs() < 1e-9, "{taken:?}");
        // The register drives a gate and an output, each over 1.04 fF of wire; then the gate, the inverter, the set-up time.
        let register = 96.01 + 1.848 * (1.664 + 1.04 + 1.128 + 1.04);
        let period = register + 14.44 + 2.264 * (1.7 + 1.04) + 9.85 + 1.882 * (1.128 + 1.04) + 40.8;
        assert!((taken.period - period).abs() < 1e-6, "{taken:?} {period}");
        assert_eq!(taken.stages, [(2, taken.period)]);
    }

    #[test]
    fn a_large_load_has_buffers_that_take_time_and_area() {
        let inverters = std::array::from_fn::<_, 30, _>(|at| format!(".subckt INV_X1 A=a ZN=y{at}\n")).concat();
        let outputs = std::array::from_fn::<_, 30, _>(|at| format!(" y{at}")).concat();
        let taken = taken(&cells(), &format!(".model m\n.inputs a\n.outputs{outputs}\n{inverters}.end\n"), false);
        // 82.2 fF: two buffers of half of it, which are a load that the port drives.
        let load = 30.0 * (1.7 + 1.04);
        let port = 96.01 + 1.848 * 2.0 * (3.402 + 1.04) + 23.44 + 0.469 * load / 2.0;
        let period = port + 9.85 + 1.882 * (1.128 + 1.04) + 40.8;
        assert!((taken.period - period).abs() < 1e-6, "{taken:?} {period}");
        assert!((taken.area - (30.0 * 0.532 + 2.0 * 1.862)).abs() < 1e-9, "{taken:?}");
    }

    #[test]
    fn registers_behind_each_other_are_stages_and_a_ring_is_none() {
        let chain = ".model m\n.inputs a\n.outputs y\n.subckt DFFR_X1 CK=c D=a Q=b QN=f1 RN=r\n.subckt INV_X1 A=b ZN=n\n\
                     .subckt DFFR_X1 CK=c D=n Q=y QN=f2 RN=r\n.end\n";
        let gates = |blif: &str| taken(&cells(), blif, true).stages.iter().map(|stage| stage.0).collect::<Vec<_>>();
        assert_eq!(gates(chain), [0, 1]);
        assert_eq!(gates(&chain.replace("D=a", "D=y")), Vec::<u64>::new());
    }
}
