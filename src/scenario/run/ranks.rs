//! Ranks of a run: all of them begin, and with the same run, or none does.

use super::runner::Runner;
use crate::checkpoint::Identity;
use watershed_scenario_interface::run::{RunError, RunOptions};

/// How far a rank is before the first cycle.
#[derive(serde::Serialize, serde::Deserialize)]
enum RankStart {
    /// It evaluates one of several parts.
    Runs(Identity, usize),
    /// It leaves the run to the first rank.
    Leaves,
    Failed(String),
}

/// The run that has begun here, if all ranks have begun it.
///
/// # Errors
/// One of them could not, or was given another scenario or other options.
pub(super) fn all_begin<'a>(
    options: &RunOptions<'_>,
    begun: Result<Runner<'a>, RunError>,
) -> Result<Runner<'a>, RunError> {
    let Some(ranks) = options.ranks else { return begun };
    let own = match &begun {
        Ok(runner) => RankStart::Runs(runner.identity(options), runner.system.parts()),
        Err(RunError::Elsewhere) => RankStart::Leaves,
        Err(error) => RankStart::Failed(error.to_string()),
    };
    let all = ranks.all_gather(serde_json::to_vec(&own).unwrap_or_default());
    let begun = begun?;
    let other = |rank: usize| {
        let what = "other data files, other options, or another version or build of the program";
        RunError::Usage(format!("rank {rank} was given another scenario than rank 0, {what}"))
    };
    let mut first = None;
    for (rank, ready) in all.iter().enumerate() {
        match serde_json::from_slice(ready) {
            Ok(RankStart::Failed(error)) => return Err(RunError::of_rank(rank, &error)),
            Ok(RankStart::Runs(identity, parts)) => {
                let own = (identity, parts);
                if *first.get_or_insert_with(|| own.clone()) != own {
                    return Err(other(rank));
                }
            }
            Ok(RankStart::Leaves) if first.as_ref().is_some_and(|(_, parts)| *parts == 1) => {}
            _ => return Err(other(rank)),
        }
    }
    Ok(begun)
}
