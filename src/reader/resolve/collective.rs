//! `[[collective]]`: operation, data, participants and trees.

use super::{Resolver, port_number, saturated_count};
use std::collections::BTreeMap;

use crate::config::{Collective, Data, Participants, Start, SwitchRegisters, Topology, Tree};
use crate::file::{CollectiveFile, CollectiveKind, DelayFile, ParticipantsFile, ScenarioFile, SwitchRegistersFile};
use crate::names::{self, Accumulate, DType, NamedValues, Op, Round};
use crate::participants::{listed, nobody_receives};
use crate::problem::Problem;
use crate::random::Stream;
use crate::source::child;
use crate::{limits, segments, shipped};

impl Resolver<'_> {
    pub fn collectives(&mut self, file: &ScenarioFile, topology: &Topology) -> Vec<Collective> {
        let mut names = BTreeMap::new();
        let mut total = 0u128;
        let mut resolved = Vec::new();
        for (index, collective) in file.collective.iter().enumerate() {
            let path = format!("collective[{index}]");
            let name = collective.name.clone().unwrap_or_else(|| format!("c{index}"));
            self.unique(&mut names, &name, &path);
            if collective.id >= file.switch.collective_ids {
                self.report(
                    Problem::at(format!("{path}.id"), format!("the switches have no collective id {}", collective.id))
                        .expected(format!("an id from 0 to {}", file.switch.collective_ids - 1))
                        .help("`switch.collective_ids` is how many there are"),
                );
            }
            let before = self.problems.len();
            let collective = self.collective(collective, index, name, &path, file, topology);
            let volume = u128::from(collective.elements) * collective.rows().max(1) as u128;
            total = total.saturating_add(volume);
            if total > u128::from(limits::CONTRIBUTIONS) && self.problems.len() == before {
                self.report(
                    Problem::at(
                        format!("{path}.elements"),
                        format!("{} elements from all participants are too many", saturated_count(total)),
                    )
                    .expected(format!(
                        "up to {} in the whole scenario: elements x participants",
                        limits::CONTRIBUTIONS
                    )),
                );
            }
            resolved.push(collective);
        }
        resolved
    }

    pub fn unique(&mut self, names: &mut BTreeMap<String, String>, name: &str, path: &str) {
        if let Some(first) = names.insert(name.to_owned(), path.to_owned()) {
            self.report(
                Problem::at(format!("{path}.name"), format!("the name \"{name}\" is taken"))
                    .related(format!("{first}.name"), "by this one"),
            );
        }
    }

    fn collective(
        &mut self,
        file: &CollectiveFile,
        index: usize,
        name: String,
        path: &str,
        scenario: &ScenarioFile,
        topology: &Topology,
    ) -> Collective {
        let kind = file.kind;
        let (op, dtype, round) = self.operation(file, path);
        let (accumulate, result_stays_wide) = self.accumulate(file, path, dtype);
        let elements = self.elements(file, path);
        let participants = self.participants(file, path, topology);
        let (delays, delay_random_max) = self.delays(file, path, index, participants.len(), scenario.seed);
        let source = file.source.unwrap_or(0);
        if file.source.is_some() && kind != CollectiveKind::Broadcast {
            self.report(Problem::at_key(format!("{path}.source"), "only a broadcast has a source"));
        } else if source as usize >= participants.len() && !participants.is_empty() {
            self.report(
                Problem::at(format!("{path}.source"), format!("there is no participant {source}"))
                    .expected(format!("an index from 0 to {} into the participants", participants.len() - 1)),
            );
        }
        if let Some(receiver) = file.receiver {
            let receiver_path = format!("{path}.receiver");
            if kind != CollectiveKind::Reduce {
                self.report(Problem::at_key(receiver_path, "only a reduce has a receiver"));
            } else if receiver >= topology.end_points() {
                self.report(
                    Problem::at(receiver_path, format!("there is no end point {receiver}"))
                        .expected(format!("0 to {}", topology.end_points() - 1)),
                );
            }
        }
        if file.inclusive.is_some() && kind != CollectiveKind::Scan {
            self.report(Problem::at_key(format!("{path}.inclusive"), "only a scan is inclusive or exclusive"));
        }
        let rows = match kind {
            CollectiveKind::Allreduce | CollectiveKind::Reduce | CollectiveKind::Scan => participants.len(),
            CollectiveKind::Broadcast => 1,
            CollectiveKind::Barrier => 0,
        };
        let data = if file.called {
            self.called(file, path);
            Data::None
        } else {
            self.data(file, path, dtype, elements, rows)
        };
        let tree = self.tree(file, path, topology);
        if kind == CollectiveKind::Broadcast && participants.len() == 1 && !matches!(tree, Tree::Registers(_)) {
            self.report(nobody_receives(path));
        }
        Collective {
            name,
            kind,
            id: file.id,
            op,
            dtype,
            accumulate,
            result_stays_wide,
            round,
            elements,
            participants,
            root: match tree {
                Tree::Auto | Tree::Root(_) => Some(file.root.clone().unwrap_or_else(|| "auto".to_owned())),
                Tree::Registers(_) => None,
            },
            tree,
            inclusive: file.inclusive.unwrap_or(true),
            called: file.called,
            start: Start { cycle: file.start_cycle, delays, random_max: delay_random_max },
            source,
            receiver: file.receiver,
            segments: segments::checked(
                file,
                path,
                (dtype, elements, scenario.switch.collective_ids),
                &mut self.problems,
            ),
            plane: file.plane,
            data,
        }
    }

    /// What programs say of a collective that they call, its table cannot.
    fn called(&mut self, file: &CollectiveFile, path: &str) {
        for key in ["elements", "data", "start_cycle", "delay_cycles"] {
            if self.source.has(&format!("{path}.{key}")) {
                let message = format!("programs call this collective: `{key}` is theirs to say");
                let called = format!("{path}.called");
                self.report(Problem::at_key(format!("{path}.{key}"), message).related(called, "said here"));
            }
        }
        if file.receiver.is_some_and(|receiver| match &file.participants {
            ParticipantsFile::All => false,
            ParticipantsFile::List(list) => !list.contains(&u64::from(receiver)),
        }) {
            self.report(
                Problem::at(format!("{path}.receiver"), "who receives must call the collective, too")
                    .expected("one of the participants"),
            );
        }
    }

    fn operation(&mut self, file: &CollectiveFile, path: &str) -> (Option<Op>, DType, Round) {
        let dtype = file.dtype.as_deref().and_then(DType::from_name).unwrap_or(DType::F64);
        let round = file.round.as_deref().and_then(Round::from_name).unwrap_or_default();
        let given = file.op.as_deref().and_then(Op::from_name);
        let op_path = format!("{path}.op");
        let op = match file.kind {
            CollectiveKind::Broadcast => {
                if given.is_some() {
                    self.report(Problem::at(op_path, "a broadcast has no operation"));
                }
                None
            }
            CollectiveKind::Barrier => {
                if given.is_some_and(|op| op != Op::Barrier) {
                    self.report(Problem::at(op_path, "a barrier carries no data to operate on").expected("no `op`"));
                }
                Some(Op::Barrier)
            }
            CollectiveKind::Allreduce | CollectiveKind::Reduce | CollectiveKind::Scan => {
                let op = given.unwrap_or(Op::Sum);
                if op == Op::Barrier {
                    self.report(
                        Problem::at(op_path, "the operation \"barrier\" reduces nothing")
                            .help("a barrier is `kind = \"barrier\"`"),
                    );
                } else if let Err(reason) = names::supports(op, dtype) {
                    let legal = DType::NAMES
                        .iter()
                        .filter(|(_, dtype)| names::supports(op, *dtype).is_ok())
                        .map(|(name, _)| format!("\"{name}\""));
                    self.report(
                        Problem::at(
                            op_path,
                            format!("there is no \"{}\" for {}: the operation {reason}", op.name(), dtype.name()),
                        )
                        .expected(format!("a dtype of {}", names::one_of(legal))),
                    );
                }
                Some(op)
            }
        };
        (op, dtype, round)
    }

    /// The wider type in which a reduction sums, and whether its result stays in it.
    fn accumulate(&mut self, file: &CollectiveFile, path: &str, dtype: DType) -> (Option<Accumulate>, bool) {
        let named = |name: &Option<String>| name.as_deref().and_then(DType::from_name);
        let quoted = |dtype: DType| format!("\"{}\"", NamedValues::name(dtype));
        let (accumulate_path, result_path) = (format!("{path}.accumulate"), format!("{path}.result_dtype"));
        let mut pair = None;
        if let Some(wide) = named(&file.accumulate) {
            let wider = Accumulate::ALL.iter().filter(|pair| pair.operand() == dtype);
            let wider: Vec<String> = wider.map(|pair| quoted(pair.accumulator())).collect();
            pair = Accumulate::new(dtype, wide);
            if !matches!(file.kind, CollectiveKind::Allreduce | CollectiveKind::Reduce) {
                let message = format!("a {} accumulates nothing", file.kind.name());
                self.report(Problem::at_key(&accumulate_path, message));
            } else if wider.is_empty() {
                let message = format!("{} is summed in its own type only", NamedValues::name(dtype));
                let expected = "no `accumulate`, or a dtype of \"f16\", \"bf16\", \"fp8_e4m3\" or \"fp8_e5m2\"";
                self.report(Problem::at(&accumulate_path, message).expected(expected));
            } else if pair.is_none() {
                let message =
                    format!("{} does not accumulate in {}", NamedValues::name(dtype), NamedValues::name(wide));
                self.report(Problem::at(&accumulate_path, message).expected(names::one_of(wider)));
            }
        }
        let Some(result) = named(&file.result_dtype) else { return (pair, false) };
        let wide = pair.map(Accumulate::accumulator);
        if result != dtype && Some(result) != wide && (file.accumulate.is_none() || pair.is_some()) {
            let types = [Some(dtype), wide];
            let problem = Problem::at(
                result_path,
                format!("the results of this collective are no {}", NamedValues::name(result)),
            )
            .expected(names::one_of(types.into_iter().flatten().map(quoted)));
            let hint = "a type wider than that of the elements is the one named by `accumulate`";
            self.report(if wide.is_none() { problem.help(hint) } else { problem });
        }
        (pair, Some(result) == wide)
    }

    fn elements(&mut self, file: &CollectiveFile, path: &str) -> u64 {
        let elements_path = format!("{path}.elements");
        let barrier = file.kind == CollectiveKind::Barrier;
        let elements = file.elements.unwrap_or(u64::from(!barrier));
        if barrier && elements != 0 {
            self.report(Problem::at(elements_path, "a barrier has no elements").expected("0, or nothing"));
            return 0;
        }
        if !barrier && elements == 0 {
            self.report(Problem::at(elements_path, "only a barrier has no elements").expected("1 or more"));
            return 1;
        }
        elements
    }

    fn participants(&mut self, file: &CollectiveFile, path: &str, topology: &Topology) -> Participants {
        let path = format!("{path}.participants");
        let list = listed(&file.participants, topology.end_points(), "takes part twice", &path, &mut self.problems);
        Participants { list, all: file.participants == ParticipantsFile::All }
    }

    fn delays(
        &mut self,
        file: &CollectiveFile,
        path: &str,
        index: usize,
        participants: usize,
        seed: u64,
    ) -> (Vec<u64>, Option<u64>) {
        match &file.delay_cycles {
            DelayFile::Same(delay) => (vec![*delay; participants], None),
            DelayFile::Each(list) => {
                if list.len() != participants {
                    self.report(
                        Problem::at(
                            format!("{path}.delay_cycles"),
                            format!("{} delays for {participants} participants", list.len()),
                        )
                        .expected("one number for all, or one for each"),
                    );
                }
                (list.clone(), None)
            }
            DelayFile::Random { random_max } => {
                let delays = (0..participants)
                    .map(|participant| Stream::delays(seed, index, participant).below(random_max + 1))
                    .collect();
                (delays, Some(*random_max))
            }
        }
    }

    fn data(&mut self, file: &CollectiveFile, path: &str, dtype: DType, elements: u64, rows: usize) -> Data {
        let data_path = format!("{path}.data");
        if file.kind == CollectiveKind::Barrier {
            if file.data.is_some() {
                self.report(Problem::at_key(data_path, "a barrier has no data"));
            }
            return Data::None;
        }
        let Some(data) = &file.data else {
            return Data::Random(crate::values::default_distribution(dtype));
        };
        if let Some(distribution) = data.random {
            return Data::Random(distribution);
        }
        if let Some(values) = &data.values {
            let values_path = format!("{data_path}.values");
            let who = if file.kind == CollectiveKind::Broadcast {
                "one, that of the source".to_owned()
            } else {
                format!("{rows}, one a participant")
            };
            let vector = (crate::values::Length::of_vector(elements), dtype);
            crate::values::check_values(values, &values_path, (rows, who), vector, &mut self.problems);
            return Data::Values(values.clone());
        }
        if let Some(name) = &data.file {
            let full = self.base.join(name);
            let file_path = format!("{data_path}.file");
            let extension = full.extension().and_then(|e| e.to_str()).unwrap_or("");
            if !["npy", "csv", "hex"].contains(&extension) {
                self.report(
                    Problem::at(&file_path, format!("\"{name}\" is no data file"))
                        .expected("a name that ends in .npy, .csv or .hex"),
                );
            } else if let Err(error) = shipped::len(&full) {
                let reason = match error.kind() {
                    std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
                    _ => error.to_string(),
                };
                self.report(
                    Problem::at(file_path, format!("cannot read \"{name}\": {reason}"))
                        .help("the path is relative to the scenario file"),
                );
            }
            return Data::File { name: name.clone(), path: full };
        }
        self.report(
            Problem::at(data_path, "the table says nothing about the data").expected("`random`, `values` or `file`"),
        );
        Data::None
    }

    pub fn tree(&mut self, file: &CollectiveFile, path: &str, topology: &Topology) -> Tree {
        let saved = file.embedding.as_ref().map(|name| (self.embedding(name, path), format!("{path}.embedding")));
        let given = file.registers.as_ref().map(|registers| (registers, format!("{path}.registers")));
        if let Some((registers, registers_path)) = given.or(saved.as_ref().map(|(set, path)| (set, path.clone()))) {
            return Tree::Registers(self.registers(registers, &registers_path, topology));
        }
        match file.root.as_deref() {
            None | Some("auto") => Tree::Auto,
            Some(name) => self.switch(name, &format!("{path}.root"), false, topology).map_or(Tree::Auto, Tree::Root),
        }
    }

    pub fn registers(
        &mut self,
        registers: &BTreeMap<String, SwitchRegistersFile>,
        registers_path: &str,
        topology: &Topology,
    ) -> Vec<SwitchRegisters> {
        let mut sets = Vec::new();
        for (name, set) in registers {
            let here = child(registers_path, name);
            let Some(switch) = self.switch(name, &here, true, topology) else {
                continue;
            };
            let request = self.port_vectors(&set.request, &format!("{here}.request"));
            let response = self.port_vectors(&set.response, &format!("{here}.response"));
            sets.push(SwitchRegisters { switch, name: name.clone(), request, response });
        }
        sets.sort_by_key(|set| set.switch);
        if registers.is_empty() && self.problems.is_empty() {
            self.report(
                Problem::at(registers_path, "no switch has a register")
                    .expected("registers of at least one switch, or none of this table for the built-in tree"),
            );
        }
        sets
    }

    /// The registers of an embedding that was saved.
    fn embedding(&mut self, name: &str, path: &str) -> BTreeMap<String, SwitchRegistersFile> {
        let full = self.base.join(name);
        let read = || -> Result<BTreeMap<String, SwitchRegistersFile>, String> {
            let size = shipped::len(&full).map_err(|error| error.to_string())?;
            if size > limits::DATA_BYTES {
                return Err(format!("it is longer than {} bytes", limits::DATA_BYTES));
            }
            let text = shipped::text(&full).map_err(|error| error.to_string())?;
            toml::from_str(&text).map_err(|error| {
                let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
                format!("line {line}: {}", error.message())
            })
        };
        read().unwrap_or_else(|reason| {
            self.report(
                Problem::at(format!("{path}.embedding"), format!("cannot load \"{name}\": {reason}"))
                    .expected("registers by the name of the switch, as `watershed embed --save` writes them"),
            );
            BTreeMap::new()
        })
    }

    pub fn switch(&mut self, name: &str, path: &str, is_key: bool, topology: &Topology) -> Option<u32> {
        let switch = topology.switch_by_name(name);
        if switch.is_none() {
            let message = format!("there is no switch \"{name}\"");
            let problem = if is_key { Problem::at_key(path, message) } else { Problem::at(path, message) };
            // Names of a big system are regular: its first ones are enough to find a slip.
            let known: Vec<String> =
                (0..topology.switches().min(4096)).map(|switch| topology.switch_name(switch)).collect();
            let problem = problem.expected(topology.switch_names());
            // A wrong number behind the right word is no slip of spelling.
            let word = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_').to_owned();
            let spelt = known.iter().any(|known| word(known) == word(name));
            self.report(if spelt { problem } else { problem.nearest(name, known.iter().map(String::as_str)) });
        }
        switch
    }

    fn port_vectors(&mut self, registers: &BTreeMap<String, Vec<u32>>, path: &str) -> Vec<(u16, Vec<u16>)> {
        let mut vectors: Vec<(u16, Vec<u16>)> = Vec::new();
        for (input, outputs) in registers {
            let here = child(path, input);
            let Some(port) = port_number(input, 'I') else {
                self.report(
                    Problem::at_key(here, format!("\"{input}\" is not an input port"))
                        .expected("I and the number of the port, for example I7 = [2, 3]"),
                );
                continue;
            };
            let mut sorted: Vec<u16> = Vec::with_capacity(outputs.len());
            for (index, output) in outputs.iter().enumerate() {
                if sorted.contains(&(*output as u16)) {
                    self.report(Problem::at(format!("{here}[{index}]"), format!("output {output} is listed twice")));
                } else {
                    sorted.push(*output as u16);
                }
            }
            sorted.sort_unstable();
            vectors.push((port, sorted));
        }
        vectors.sort();
        vectors
    }

    // ---- traffic ---------------------------------------------------------------------------------------------------
}
