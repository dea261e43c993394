//! Command lines of `wave show` for the place and the cycles that a check or `why` names.

use std::path::Path;

use super::{invocation, print_error};
use watershed_scenario_interface::Runnable;
use watershed_scenario_interface::result::{Check, Document};
use watershed_study::sweep::store::shell_word;

/// What leads to a waveform in which the lines that follow show something.
const HOW: &str = "  run it again with `--wave failed.fst`; what each failed check speaks of is then shown by";

/// Cycles shown before and after those that were named.
const AROUND: u64 = 10;

/// Cycles shown of the end of a run, where nothing says which cycle it is about.
const END: u64 = 40;

/// Globs on the signals of a place as results name it: `core4.P7`, `core4.ceng`, `s1.P4.engine`, `leaf6`.
fn globs(place: &str) -> Vec<String> {
    let of_one = |place: &str| {
        let parts: Vec<&str> = place.split('.').collect();
        let number =
            |part: &str| part.strip_prefix('P').filter(|digits| digits.parse::<u32>().is_ok()).map(str::to_owned);
        match parts[..] {
            [node, port] if number(port).is_some() => {
                let port = number(port).unwrap_or_default();
                format!("**.{node}.switch.{{in{port},out{port}}}.**")
            }
            [node, port, "engine"] if number(port).is_some() => format!("**.{node}.{port}.**"),
            [node, "ceng"] => format!("**.{node}.switch.ceng.*"),
            // What computes there; not the switch that has the name as well.
            [node] => format!("**.{node}.{{memory,leaf*,root*,node*,part*,client*,soft*,host*,thread*}}.**"),
            _ => format!("**.{place}.**"),
        }
    };
    // What stands behind a comma says more of it, as the round of a message.
    let place = place.split_once(", ").map_or(place, |(place, _)| place);
    let engine = |place: &str| (!place.contains('.')).then(|| format!("**.{place}.switch.ceng.*"));
    place.split(" -> ").flat_map(|place| std::iter::once(of_one(place)).chain(engine(place))).collect()
}

/// The line that shows places of a waveform from one cycle to another.
pub(super) fn line(file: &Path, places: &[&str], from: u64, to: u64) -> String {
    let mut all: Vec<String> = places.iter().flat_map(|place| globs(place)).collect();
    all.dedup();
    command(file, &all, from, to)
}

fn command(file: &Path, globs: &[String], from: u64, to: u64) -> String {
    let signals: Vec<String> = globs.iter().map(|glob| format!("--signals '{glob}' ")).collect();
    let (from, to) = (from.saturating_sub(AROUND / 2), to + AROUND / 2);
    let file = shell_word(&file.display().to_string());
    invocation::line(&format!("watershed wave show {file} {}--window {from}..{to}", signals.concat()))
}

/// Says what shows the failed checks of a run.
pub(super) fn print_wave_commands(loaded: &Runnable, document: &Document, wave: Option<&Path>) {
    for line in of_checks(loaded, document, wave) {
        print_error(&line);
    }
}

/// What shows the failed checks of a run: the line for its waveform, or how to get one.
fn of_checks(loaded: &Runnable, document: &Document, wave: Option<&Path>) -> Vec<String> {
    let failed: Vec<&Check> = document.checks.iter().filter(|check| !check.passed).collect();
    // Of large systems a layout is costly: it is made for a check that failed.
    let layout = if failed.is_empty() { None } else { loaded.layout().ok() };
    let names: Vec<String> = layout.into_iter().flat_map(|layout| layout.plan.nodes).map(|node| node.name).collect();
    let shown = |detail: &str| {
        let words = || detail.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '.');
        let named = words().map(|word| word.trim_end_matches('.')).find(|word| {
            let node = word.split('.').next().unwrap_or(word);
            names.iter().any(|name| name == word || name == node)
        });
        let mut after = words().skip_while(|word| *word != "cycle").skip(1);
        let cycle: Option<u64> = after.next().and_then(|word| word.parse().ok());
        (named.map(str::to_owned), cycle)
    };
    let told = |check: &&Check| {
        let file = wave.unwrap_or(Path::new("failed.fst"));
        let (place, cycle) = shown(&check.detail);
        let (from, to) = cycle.map_or((document.cycles.saturating_sub(END), document.cycles), |cycle| (cycle, cycle));
        let place =
            place.map(|place| if names.contains(&place) { vec![format!("**.{place}.**")] } else { globs(&place) });
        format!("  {}: {}", check.name, command(file, &place.unwrap_or_default(), from, to))
    };
    let how = (wave.is_none() && !failed.is_empty()).then(|| HOW.to_owned());
    how.into_iter().chain(failed.iter().map(told)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_become_globs_on_signals() {
        let shown = |place: &str| line(Path::new("w.fst"), &[place], 20, 22);
        assert_eq!(
            shown("core4.P7"),
            invocation::line("watershed wave show w.fst --signals '**.core4.switch.{in7,out7}.**' --window 15..27")
        );
        assert_eq!(
            shown("leaf6 -> s1.P4.engine"),
            invocation::line(
                "watershed wave show w.fst --signals '**.leaf6.{memory,leaf*,root*,node*,part*,client*,soft*,host*,thread*}.**' \
                 --signals '**.leaf6.switch.ceng.*' --signals '**.s1.P4.**' --window 15..27"
            )
        );
        let engine = "watershed wave show w.fst --signals '**.sw4.switch.ceng.*' --window 15..27";
        assert_eq!(shown("sw4.ceng"), invocation::line(engine));
        let message = "watershed wave show w.fst --signals '**.leaf0.node3.**' --window 15..27";
        assert_eq!(shown("leaf0.node3, round 1"), invocation::line(message));
        let spaced = line(Path::new("my runs/w.fst"), &["sw4.ceng"], 20, 22);
        assert!(spaced.contains("wave show 'my runs/w.fst' --signals"), "{spaced}");
    }
}
