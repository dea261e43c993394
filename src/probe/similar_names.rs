//! Signals that are like one that does not exist, for the error that says so.

use std::collections::BTreeSet;

/// Names told, at most.
const MAX_SUGGESTED: usize = 3;

/// What there is instead of a signal of this name, as the end of a sentence: signals whose names end in it, those in the scope
/// of that name, those that are spelled nearly so, or else some that exist. `names` gives the whole names of all signals, and
/// is asked as often as it takes.
pub fn suggest<I>(wanted: &str, names: impl Fn() -> I) -> String
where
    I: Iterator<Item = String>,
{
    let (ending, inside) = (format!(".{wanted}"), format!("{wanted}."));
    let ends: Vec<String> = names().filter(|name| name.ends_with(&ending)).take(MAX_SUGGESTED + 1).collect();
    if !ends.is_empty() {
        return format!("; a name is written whole, did you mean {}?", listed(&ends, " or "));
    }
    // What stands in a scope itself says more than what is deeper in it.
    let in_it = |name: &String| name.strip_prefix(&inside).is_some_and(|rest| !rest.contains('.'));
    let mut signals: Vec<String> = names().filter(in_it).take(MAX_SUGGESTED + 1).collect();
    if signals.is_empty() {
        signals = names().filter(|name| name.starts_with(&inside)).take(MAX_SUGGESTED + 1).collect();
    }
    if !signals.is_empty() {
        return format!("; that is a scope with {} in it", listed(&signals, ", "));
    }
    let limit = (wanted.chars().count() / 3).max(2);
    let mut best = (limit, BTreeSet::new());
    for name in names().filter(|name| name.len().abs_diff(wanted.len()) <= limit) {
        let cost = strsim::levenshtein(wanted, &name);
        if cost < best.0 {
            best = (cost, BTreeSet::new());
        }
        if cost == best.0 {
            best.1.insert(name);
        }
    }
    let near: Vec<String> = best.1.into_iter().take(MAX_SUGGESTED).collect();
    if !near.is_empty() {
        return format!("; did you mean {}?", listed(&near, " or "));
    }
    let some: Vec<String> = names().take(MAX_SUGGESTED).collect();
    if some.is_empty() { String::new() } else { format!("; there is, for example, {}", listed(&some, ", ")) }
}

/// Names in a row, with a word for those that are too many.
fn listed(names: &[String], between: &str) -> String {
    let some: Vec<String> = names.iter().take(MAX_SUGGESTED).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > MAX_SUGGESTED { format!("{between}others") } else { String::new() };
    some.join(between) + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_leads_to_signals_that_exist() {
        let names = [
            "die.tile0.core0.switch.ceng.state",
            "die.tile0.core0.switch.ceng.operands",
            "die.tile0.core1.switch.ceng.state",
            "die.tile1.core2.switch.ceng.state",
            "die.tile1.core3.switch.ceng.state",
            "die.tile1.core3.switch.ceng.tree.busy",
        ];
        let told = |wanted: &str| suggest(wanted, || names.iter().map(ToString::to_string));
        insta::assert_snapshot!(
            [
                told("die.tile0.core1.switch.ceng.stat"),
                told("die.tile0.core1.ceng.state"),
                told("die.tile0.core9.switch.ceng.operands"),
                told("ceng.operands"),
                told("ceng.state"),
                told("die.tile1.core3.switch.ceng"),
                told("die.tile0.core0"),
                told("state_of_what"),
                told("x"),
                suggest("x", std::iter::empty),
            ]
            .join("\n"),
            @r"
        ; did you mean `die.tile0.core1.switch.ceng.state`?
        ; did you mean `die.tile0.core1.switch.ceng.state`?
        ; did you mean `die.tile0.core0.switch.ceng.operands`?
        ; a name is written whole, did you mean `die.tile0.core0.switch.ceng.operands`?
        ; a name is written whole, did you mean `die.tile0.core0.switch.ceng.state` or `die.tile0.core1.switch.ceng.state` or `die.tile1.core2.switch.ceng.state` or others?
        ; that is a scope with `die.tile1.core3.switch.ceng.state` in it
        ; that is a scope with `die.tile0.core0.switch.ceng.state`, `die.tile0.core0.switch.ceng.operands` in it
        ; there is, for example, `die.tile0.core0.switch.ceng.state`, `die.tile0.core0.switch.ceng.operands`, `die.tile0.core1.switch.ceng.state`
        ; there is, for example, `die.tile0.core0.switch.ceng.state`, `die.tile0.core0.switch.ceng.operands`, `die.tile0.core1.switch.ceng.state`
        "
        );
    }
}
