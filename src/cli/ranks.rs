//! `mpirun -n N watershed run`: the processes that MPI started, as ranks of a run (feature `mpi`).
//!
//! Each reads the scenario and evaluates a share of the system; rank 0 prints and writes what the run leaves behind.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use watershed_fabric::Exchange;
use watershed_scenario_interface::run::RunError;

/// The number of a rank that panics once all have begun.
#[cfg(debug_assertions)]
const PANICS: &str = "WATERSHED_PANICS";

/// The ranks of this run, while MPI is there.
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "only MPI makes one"))]
pub(super) struct MpiRanks {
    exchange: Arc<dyn Exchange>,
    counts: Arc<ExchangeCounters>,
    #[cfg(feature = "mpi")]
    _universe: Option<mpi::environment::Universe>,
}

/// What a rank gave to the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub(super) struct ExchangeStatistics {
    pub ranks: usize,
    /// How often all ranks met.
    pub exchanges: u64,
    /// What this one gave away.
    pub given_bytes: u64,
    /// Wall time of that, waiting for others included.
    pub exchange_seconds: f64,
}

/// How many processes were started together, as Open MPI and MPICH tell it.
pub(super) fn started() -> usize {
    let of = |name: &str| env::var(name).ok()?.parse().ok();
    of("OMPI_COMM_WORLD_SIZE").or_else(|| of("PMI_SIZE")).unwrap_or(1)
}

impl MpiRanks {
    /// The ranks, if this process was started by `mpirun` with others.
    ///
    /// # Errors
    /// It was, and the program was built without MPI, or MPI cannot be begun.
    #[cfg(feature = "mpi")]
    pub fn join() -> Result<Option<MpiRanks>, RunError> {
        if started() < 2 {
            return Ok(None);
        }
        let begun = mpi::initialize_with_threading(mpi::Threading::Funneled);
        let (universe, _) = begun.ok_or_else(|| RunError::Usage("MPI has been begun already".to_owned()))?;
        let exchange = over_mpi::World::new();
        exchange.abort_on_panic();
        let counts = Arc::new(ExchangeCounters::default());
        let exchange = Arc::new(CountedExchange { inner: exchange, counts: Arc::clone(&counts) });
        Ok(Some(MpiRanks { exchange, counts, _universe: Some(universe) }))
    }

    /// As with MPI: without it, more processes than one would all run the same and write the same files.
    #[cfg(not(feature = "mpi"))]
    pub fn join() -> Result<Option<MpiRanks>, RunError> {
        match started() {
            0 | 1 => Ok(None),
            more => Err(RunError::Usage(format!(
                "{more} processes were started together, and this program was built without MPI: build it with \
                 `cargo build --release --features mpi`, or start one process, with --threads"
            ))),
        }
    }

    /// Where the ranks meet.
    pub fn exchange(&self) -> &Arc<dyn Exchange> {
        &self.exchange
    }

    /// What this rank has given to the others.
    pub fn exchanged(&self) -> ExchangeStatistics {
        let ExchangeCounters { calls, bytes, nanos } = &*self.counts;
        let [calls, bytes, nanos] = [calls, bytes, nanos].map(|count| count.load(Ordering::Relaxed));
        ExchangeStatistics {
            ranks: self.exchange.ranks(),
            exchanges: calls,
            given_bytes: bytes,
            exchange_seconds: nanos as f64 * 1e-9,
        }
    }

    /// Whether another rank prints and writes.
    pub fn is_follower(&self) -> bool {
        self.exchange.rank() > 0
    }

    /// All ranks can begin, or none does.
    ///
    /// # Errors
    /// This rank cannot, or another one.
    pub fn begin<X>(&self, own: Result<X, RunError>) -> Result<X, RunError> {
        let failed = own.as_ref().map_or_else(ToString::to_string, |_| String::new());
        let all = self.exchange.all_gather(failed.into_bytes());
        let own = own?;
        // A test lets a rank panic while the others go on; what users build does not know the name.
        #[cfg(debug_assertions)]
        assert!(env::var(PANICS).ok() != Some(self.exchange.rank().to_string()), "{PANICS} names this rank");
        match all.iter().zip(0..).find(|(error, _)| !error.is_empty()) {
            None => Ok(own),
            Some((error, rank)) => Err(RunError::of_rank(rank, &String::from_utf8_lossy(error))),
        }
    }
}

/// What an exchange took.
#[derive(Default)]
#[cfg_attr(not(feature = "mpi"), allow(dead_code, reason = "only MPI makes one"))]
struct ExchangeCounters {
    calls: AtomicU64,
    bytes: AtomicU64,
    nanos: AtomicU64,
}

/// An exchange that is measured.
#[cfg(feature = "mpi")]
struct CountedExchange<X> {
    inner: X,
    counts: Arc<ExchangeCounters>,
}

#[cfg(feature = "mpi")]
impl<X: Exchange> CountedExchange<X> {
    fn count(&self, bytes: usize, exchange: impl FnOnce(&X) -> Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let begun = std::time::Instant::now();
        let came = exchange(&self.inner);
        self.counts.calls.fetch_add(1, Ordering::Relaxed);
        self.counts.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.counts.nanos.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        came
    }
}

#[cfg(feature = "mpi")]
impl<X: Exchange> Exchange for CountedExchange<X> {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn ranks(&self) -> usize {
        self.inner.ranks()
    }

    fn all_to_all(&self, out: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        self.count(out.iter().map(Vec::len).sum(), |inner| inner.all_to_all(out))
    }

    fn all_gather(&self, mine: Vec<u8>) -> Vec<Vec<u8>> {
        self.count(mine.len() * (self.ranks() - 1), |inner| inner.all_gather(mine))
    }
}

#[cfg(feature = "mpi")]
mod over_mpi {
    use std::io::{self, Write as _};
    use std::process;

    use mpi::Count;
    use mpi::collective::CommunicatorCollectives as _;
    use mpi::datatype::{Partition, PartitionMut};
    use mpi::topology::{Communicator as _, SimpleCommunicator};
    use watershed_fabric::Exchange;

    /// Bytes of all ranks that a collective call moves at most: MPI counts and places them with 31 bits.
    const MOST: usize = 1 << 30;

    /// All processes.
    pub struct World {
        rank: usize,
        ranks: usize,
    }

    impl World {
        pub fn new() -> World {
            let world = SimpleCommunicator::world();
            World { rank: world.rank() as usize, ranks: world.size() as usize }
        }

        /// A rank that panics ends all: the others would wait for it for ever.
        pub fn abort_on_panic(&self) {
            let (rank, ranks) = (self.rank, self.ranks);
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                usual(panic);
                let host = mpi::environment::processor_name().unwrap_or_default();
                let process = process::id();
                // In one write: mpirun prints words of its own between two.
                let said =
                    format!("error: rank {rank} of {ranks} (process {process} on {host}) has failed: the run ends\n");
                let _ = io::stderr().write_all(said.as_bytes());
                SimpleCommunicator::world().abort(101);
            }));
        }

        /// Bytes that go to, or come from, one rank in a call.
        fn most(&self) -> usize {
            MOST / self.ranks
        }
    }

    /// How many bytes of each go in a round, and where they stand behind each other.
    fn counts(lengths: &[usize], round: usize, most: usize) -> (Vec<Count>, Vec<Count>, usize) {
        let of = |length: usize| length.saturating_sub(round * most).min(most);
        let counts: Vec<Count> = lengths.iter().map(|&length| of(length) as Count).collect();
        let (mut places, mut sum) = (Vec::with_capacity(counts.len()), 0);
        for &count in &counts {
            places.push(sum);
            sum += count;
        }
        (counts, places, sum as usize)
    }

    /// Appends what came in a round.
    fn append(all: &mut [Vec<u8>], came: &[u8], counts: &[Count], places: &[Count]) {
        for ((bytes, &count), &place) in all.iter_mut().zip(counts).zip(places) {
            bytes.extend_from_slice(&came[place as usize..][..count as usize]);
        }
    }

    impl Exchange for World {
        fn rank(&self) -> usize {
            self.rank
        }

        fn ranks(&self) -> usize {
            self.ranks
        }

        fn all_to_all(&self, out: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
            let (world, ranks, most) = (SimpleCommunicator::world(), self.ranks, self.most());
            let lengths: Vec<usize> = out.iter().map(Vec::len).collect();
            let longest = lengths.iter().max().copied().unwrap_or(0) as u64;
            // To each rank its length and the longest of all, so that everyone knows how many rounds there are.
            let told: Vec<u64> = lengths.iter().flat_map(|&length| [length as u64, longest]).collect();
            let mut heard = vec![0_u64; 2 * ranks];
            world.all_to_all_into(&told[..], &mut heard[..]);
            let comes: Vec<usize> = heard.iter().step_by(2).map(|&length| length as usize).collect();
            let longest = heard.iter().skip(1).step_by(2).max().copied().unwrap_or(0) as usize;
            let mut all: Vec<Vec<u8>> = comes.iter().map(|&length| Vec::with_capacity(length)).collect();
            for round in 0..longest.div_ceil(most) {
                let (give, from, sum) = counts(&lengths, round, most);
                let mut bytes: Vec<u8> = Vec::with_capacity(sum);
                for (out, &count) in out.iter().zip(&give) {
                    bytes.extend(out.iter().skip(round * most).take(count as usize));
                }
                let (take, to, sum) = counts(&comes, round, most);
                let mut came = vec![0_u8; sum];
                let send = Partition::new(&bytes[..], &give[..], &from[..]);
                let mut receive = PartitionMut::new(&mut came[..], &take[..], &to[..]);
                world.all_to_all_varcount_into(&send, &mut receive);
                append(&mut all, &came, &take, &to);
            }
            all
        }

        fn all_gather(&self, mine: Vec<u8>) -> Vec<Vec<u8>> {
            let (world, ranks, most) = (SimpleCommunicator::world(), self.ranks, self.most());
            let mut lengths = vec![0_u64; ranks];
            world.all_gather_into(&(mine.len() as u64), &mut lengths[..]);
            let comes: Vec<usize> = lengths.iter().map(|&length| length as usize).collect();
            let longest = comes.iter().max().copied().unwrap_or(0);
            let mut all: Vec<Vec<u8>> = comes.iter().map(|&length| Vec::with_capacity(length)).collect();
            for round in 0..longest.div_ceil(most) {
                let from = (round * most).min(mine.len());
                let bytes = &mine[from..(from + most).min(mine.len())];
                let (take, to, sum) = counts(&comes, round, most);
                let mut came = vec![0_u8; sum];
                let mut receive = PartitionMut::new(&mut came[..], &take[..], &to[..]);
                world.all_gather_varcount_into(bytes, &mut receive);
                append(&mut all, &came, &take, &to);
            }
            all
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn large_exchanges_are_split_into_several_calls() {
            let lengths = [5, 0, 12, 10];
            let rounds: Vec<_> = (0..3).map(|round| counts(&lengths, round, 5)).collect();
            assert_eq!(rounds[0], (vec![5, 0, 5, 5], vec![0, 5, 5, 10], 15));
            assert_eq!(rounds[1], (vec![0, 0, 5, 5], vec![0, 0, 0, 5], 10));
            assert_eq!(rounds[2], (vec![0, 0, 2, 0], vec![0, 0, 0, 2], 2));
        }
    }
}
