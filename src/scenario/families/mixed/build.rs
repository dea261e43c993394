//! From a checked scenario with jobs of several engines to one system with all of them (requirement X-JOB-2).
//!
//! Each family builds its part as it does in a system of its own, over the same layout; [`watershed_mixed`] says
//! what they share. Packet engines of the PBV family are put into the plan first, with the ports that they have of their own, then the
//! armed family's engines, nearest to the switch. Blocks behind internal ports and at end points change no plan.

use super::channels::{groups, has_engines, map};
use super::spec::Mixed;
use crate::build::{self as common, routed_layout};
use crate::config::Scenario;
use crate::problem::Problem;
use crate::run::family::{Family, FamilyBuild, Started, StartedRun};
use crate::run::system::Views as _;
use crate::sources::Sources;
use crate::switches::{buffer, channel_kinds, pipeline, policy, router};
use crate::trees::EngineTree;
use crate::{Loaded, Problems, armed, pbv, piuma, programs};
use watershed_armed::Discard;
use watershed_fabric::routing::Routes;
use watershed_fabric::topology::{Common, Layout, Neighbours};
use watershed_fabric::{Blocks, Parts, PlanLink, RouterCfg, Shares, SwitchCfg};
use watershed_mixed::{End, FamilyJoins, Tables, WireBlock};
use watershed_piuma::claim::Wiring;
use watershed_scenario_interface::run::{RunError, RunOptions};

/// Whether there is anything of PIUMA's: engines, hosts, programs or ranks of a workload.
fn has_cores(scenario: &Scenario) -> bool {
    has_engines(scenario) || !scenario.hosts.is_empty() || scenario.workload.is_some()
}

/// Builds the system of a scenario.
///
/// # Errors
/// What is wrong with the configuration, at its place.
pub(crate) fn build<'a>(loaded: &'a Loaded, options: &RunOptions<'_>) -> Result<StartedRun<'a>, RunError> {
    let built = assembled_as(loaded, options)?;
    let (mut system, mut sources) = (watershed_mixed::simulation(built.system), built.sources);
    let mut families: Vec<Box<dyn Family + 'a>> = Vec::new();
    if let Some(mut ready) = built.piuma {
        ready.sources = sources.take();
        families.push(Box::new(piuma::run::Run::new(loaded, system.piuma_mut(), ready)));
    }
    if let Some(mut ready) = built.armed {
        ready.sources = sources.take();
        families.push(Box::new(armed::run::Run::new(loaded, ready)));
    }
    if let Some(mut ready) = built.pbv {
        ready.sources = sources.take();
        families.push(Box::new(pbv::run::Run::new(loaded, ready)));
    }
    Ok((system, families))
}

/// The system of a scenario, and what runs on it.
pub(crate) struct MixedBuild {
    pub system: watershed_mixed::System,
    /// PIUMA's collectives, programs, hosts and ranks.
    pub piuma: Option<common::PiumaBuild<()>>,
    /// The armed family's reductions.
    pub armed: Option<armed::build::ArmedBuild<()>>,
    /// The PBV family's collectives.
    pub pbv: Option<pbv::build::PbvBuild<()>>,
    sources: Option<Sources>,
}

/// Builds the system of a scenario to look at it.
///
/// # Errors
/// What is wrong with the configuration, at its place.
pub(crate) fn assembled(loaded: &Loaded) -> Result<MixedBuild, Problems> {
    assembled_as(loaded, &RunOptions::default())
}

fn assembled_as(loaded: &Loaded, options: &RunOptions<'_>) -> Result<MixedBuild, Problems> {
    let mut problems = Vec::new();
    let built = assemble(loaded, options, &mut problems);
    built.filter(|_| problems.is_empty()).ok_or_else(|| loaded.problems(problems))
}

/// The layout of a scenario, routed, with ports for all engines.
fn lay_out(loaded: &Loaded, problems: &mut Vec<Problem>) -> Option<(Layout, Common, Sources, u16)> {
    let scenario = &loaded.scenario;
    let (map, (armed, talk, traffic)) = (map(scenario), groups(scenario));
    let common = Common {
        vcs: map.vcs(),
        engine: has_engines(scenario) || armed > 0,
        link: scenario.link.params(),
        local: scenario.link.local_params(),
    };
    let lanes = (armed + talk + traffic).max(1);
    let mut lay = routed_layout(loaded, &common, lanes, problems)?;
    let sources = Sources::place(scenario, &mut lay, common.local, problems);
    let own_ports = lay.external_ports;
    pbv::build::add_ports(scenario, &mut lay);
    Some((lay, common, sources, own_ports))
}

fn assemble(loaded: &Loaded, options: &RunOptions<'_>, problems: &mut Vec<Problem>) -> Option<MixedBuild> {
    let scenario = &loaded.scenario;
    let (no_checks, why) = (options.no_checks, options.why.is_some());
    let (log, threads) = (options.ladder || why, options.divided());
    let map = map(scenario);
    let (lay, common, mut sources, own_ports) = lay_out(loaded, problems)?;
    let (mut plan, mut bumps) = (lay.plan.clone(), Vec::<WireBlock>::new());

    // The PBV family's engines come first: those on ports of their own bring end points behind all others.
    let mut of_pbv = None;
    if scenario.pbv.is_some() {
        let options = pbv::build::BuildOptions { no_checks, log, threads, given: false };
        let mut builder = pbv::build::Builder::new(loaded, options, &lay);
        builder.own_ports = own_ports;
        let ready = builder.build(&lay, common.local);
        problems.append(&mut builder.problems);
        let (mut placed, ready) = ready?.split();
        plan = placed.plan.clone();
        placed.directory.frames = map.pbv.first;
        bumps.extend(std::mem::take(&mut placed.bumps).into_iter().map(WireBlock::from));
        of_pbv = Some((placed, ready));
    }
    let mut of_armed = None;
    if scenario.armed.is_some() {
        let options = armed::build::BuildOptions { no_checks, log, record: why, threads };
        let mut builder = armed::build::Builder::new(loaded, options);
        let ready = if builder.frames_fit(&lay) { builder.parts(&lay, plan) } else { None };
        problems.append(&mut builder.problems);
        let (mut placed, ready) = ready?.split();
        placed.tables.first_channel = map.armed.first;
        placed.tables.share(Shares { messages: map.armed.vcs.unicast, lanes: 1 });
        plan = placed.plan.clone();
        bumps.extend(std::mem::take(&mut placed.bumps).into_iter().map(WireBlock::from));
        of_armed = Some((placed, ready));
    }
    let mut of_piuma = None;
    if has_cores(scenario) {
        if programs::build::is_access_in_band(scenario) {
            let what = "accesses to registers of other switches have no channels in a network of several families";
            let problem = Problem::at("core.register_access", what).expected("\"out-of-band\"");
            problems.push(problem);
            return None;
        }
        let mut builder = common::Builder::new(loaded);
        let names = lay.switch_names().map(String::from).collect::<Vec<_>>();
        let laid = builder.place_trees(&lay, &common, &Neighbours::new(&lay.plan), names.into());
        let ready = laid.and_then(|laid| builder.place(laid, &lay, &common));
        problems.append(&mut builder.problems);
        let (mut placed, ready) = ready?.split();
        placed.registers.set_channels = map.of_piuma();
        placed.registers.messages = Some(map.piuma.vcs.set..map.piuma.vcs.total());
        of_piuma = Some((placed, ready));
    }

    let pipeline = pipeline(scenario);
    let bound = scenario.pbv.as_ref().map(|pbv| pbv.engine.priority_bound as u8);
    let plain = router(scenario);
    let switch = SwitchCfg {
        pipeline,
        policy: policy(scenario.switch.arbiter),
        monitors: scenario.checks.monitors && !no_checks,
        router: RouterCfg { class_bound: bound.unwrap_or(plain.class_bound), ..plain },
    };
    let engine = of_piuma.as_ref().filter(|_| has_engines(scenario)).map(|(placed, _)| placed.ceng.clone());
    let agent = scenario.armed.as_ref().map(|armed| armed.agent.is_some());
    let discard = agent.map(|managed| if managed { Discard::managed(scenario.link.cut()) } else { Discard::default() });
    let join = FamilyJoins { ceng: engine, discard, first_armed: map.armed.first };
    let joins = if common.engine { vec![join.clone(); lay.switches()] } else { Vec::new() };

    let (piuma, of_piuma) = of_piuma.unzip();
    let (armed, of_armed) = of_armed.unzip();
    let (pbv, of_pbv) = of_pbv.unzip();
    let (registers, cores) = piuma.map(|placed| (placed.registers, placed.ends)).unzip();
    let (tables, processes) = armed.map(|placed| (placed.tables, placed.ends)).unzip();
    let (directory, nodes) = pbv.map(|placed| (placed.directory, placed.ends)).unzip();
    let count = nodes.as_ref().map_or(lay.ends.len(), Vec::len);
    let mut cores = cores.unwrap_or_default().into_iter();
    let mut processes = processes.unwrap_or_default().into_iter();
    let mut nodes = nodes.unwrap_or_default().into_iter();
    let mut ends: Vec<End> =
        (0..count).map(|_| End::new(cores.next().unwrap_or_default(), processes.next(), nodes.next())).collect();
    for (end, mut traffic) in sources.take_traffic(scenario.seed, switch.monitors) {
        traffic.leave(map.untold());
        ends[end].traffic = Some(Box::new(traffic));
    }
    let routes = Routes { routing: lay.routing.clone(), ends: lay.ends.clone() };
    let lanes = groups(scenario).2;
    let tables = Tables { map, piuma: registers, armed: tables, pbv: directory, routes, lanes };
    let kinds = channel_kinds(scenario);
    let depths = |link: &PlanLink, vc: u8| buffer(scenario, kinds[usize::from(vc)], link);
    let blocks = Blocks { joins, no_join: join, bumps, ends };
    let parts = Parts::by_threads(threads);
    let system = watershed_mixed::system(parts, plan, tables, blocks, switch, &depths, map.names());
    let sources = (!scenario.traffic.is_empty()).then_some(sources);
    Some(MixedBuild { system, piuma: of_piuma, armed: of_armed, pbv: of_pbv, sources })
}

impl FamilyBuild for Mixed {
    fn build<'a>(&self, loaded: &'a Loaded, options: &RunOptions<'_>, _windows: bool) -> Started<'a> {
        build(loaded, options)
    }

    fn wiring(&self, loaded: &Loaded) -> Result<(Wiring, usize), Problems> {
        let built = assembled(loaded)?;
        let wiring = built.piuma.map(|ready| ready.claims.wiring).unwrap_or_default();
        Ok((wiring, built.armed.map_or(0, |ready| ready.engines.len())))
    }

    fn trees(&self, loaded: &Loaded) -> Result<Vec<EngineTree>, Problems> {
        let built = assembled(loaded)?;
        let (system, layout) = (watershed_mixed::simulation(built.system), common::layout(loaded)?);
        let (armed, pbv) = (loaded.scenario.armed.as_ref(), loaded.scenario.pbv.as_ref());
        let of_armed = armed.zip(built.armed).map(|(armed, ready)| armed::trees::of(armed, &layout, &ready));
        let of_pbv =
            pbv.zip(built.pbv).map(|(pbv, ready)| pbv::trees::of(pbv, &layout, system.pbv().directory(), &ready));
        Ok([of_armed, of_pbv].into_iter().flatten().flatten().collect())
    }
}
