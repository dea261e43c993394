//! Training by stochastic gradient descent on ranks that each have a replica of the network, as a [`Trace`] (requirement X-WORK-4).
//!
//! ```text
//!  forward      a ── b ── c                              next iteration
//!  backward                 c ── b ── a                  ┌── a ── b ── c
//!  all-reduce                 └ c   └ b  └ a ── step ────┘
//! ```
//!
//! Every rank computes its own minibatch: all layers forward, then backward. The gradients of a layer are added up over all ranks, as soon as
//! backpropagation is through with the layer ([`GradientReduction::Layers`]), or all at once behind the first layer's ([`GradientReduction::End`]). A rank does its
//! all-reduces one after the other, in the order in which backpropagation comes to the layers. The next iteration begins when all are over.
//!
//! | quantity of a layer | value |
//! |---|---|
//! | operations forward | 2 × multiply-adds × minibatch |
//! | operations backward | twice as many: gradients of the weights and of the input; once for the layer that reads the image |
//! | bytes that they touch | input and output of the minibatch and the weights, forward; the same factor backward |
//! | time | operations / peak or bytes / bandwidth, whichever is longer |
//! | bytes of its all-reduce | parameters × bytes an element |
//!
//! Layers without operations take no time and have no nodes. Updating the weights takes no time.

use std::path::PathBuf;

use super::chakra::{DEVICE, NETWORK};
use super::model::{Layer, Model};
use super::{Collective, CollectiveOp, Compute, Dependency, Format, Group, Kind, Node, Rank, Trace};

/// When gradients are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientReduction {
    /// Those of a layer as soon as backpropagation is through with it: beside the computing of the layers before it.
    Layers,
    /// All at once when backpropagation is over.
    End,
}

/// How a network is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// Replicas.
    pub ranks: u32,
    /// Images of a rank in an iteration.
    pub minibatch: u64,
    /// Iterations.
    pub iterations: u32,
    /// Bytes of an element, of weights, gradients and activations.
    pub element_bytes: u64,
    /// Operations a second of a rank, in 10^12.
    pub peak_tflops: f64,
    /// Gb/s of a rank's own memory; none: it is never short.
    pub bandwidth_gbps: Option<f64>,
    /// When gradients are added up.
    pub reduce: GradientReduction,
}

/// Both directions of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LayerPass {
    Forward,
    Backward,
}

impl Training {
    /// What a layer computes in one pass over the minibatch.
    fn compute(&self, layer: &Layer, pass: LayerPass) -> Compute {
        let times = if pass == LayerPass::Forward || layer.reads_image { 1 } else { 2 };
        let operations = (2 * times * layer.multiply_adds).saturating_mul(self.minibatch);
        let activations = (layer.input.elements() + layer.output.elements()).saturating_mul(self.minibatch);
        let elements = activations.saturating_add(layer.parameters).saturating_mul(times);
        let bytes = elements.saturating_mul(self.element_bytes);
        let moving = self.bandwidth_gbps.map_or(0.0, |gbps| bytes as f64 * 8.0 / gbps * 1e3);
        let ps = (operations as f64 / self.peak_tflops).max(moving).round() as u64;
        Compute { ps, operations, bytes, on_processor: false }
    }

    /// What a layer computes forward, and backward.
    pub fn passes(&self, layer: &Layer) -> [Compute; 2] {
        [LayerPass::Forward, LayerPass::Backward].map(|pass| self.compute(layer, pass))
    }

    /// Computing of one iteration of a rank, in ps.
    pub fn compute_ps(&self, model: &Model) -> u64 {
        let of = |layer: &Layer| self.passes(layer).iter().map(|compute| compute.ps).sum::<u64>();
        model.layers.iter().filter(|layer| layer.multiply_adds > 0).map(of).sum()
    }

    /// Nodes of a rank's trace.
    pub fn nodes_of_a_rank(&self, model: &Model) -> u64 {
        let computing = model.layers.iter().filter(|layer| layer.multiply_adds > 0);
        let each = if self.reduce == GradientReduction::Layers { 3 } else { 2 };
        let once = 1 + u64::from(self.reduce == GradientReduction::End);
        u64::from(self.iterations) * (each * computing.count() as u64 + once)
    }

    /// The trace of all ranks.
    pub fn trace(&self, model: &Model) -> Trace {
        of_ranks(self.ranks, &model.name, &self.nodes(model))
    }

    fn nodes(&self, model: &Model) -> Vec<Node> {
        let mut list = NodeList::default();
        for iteration in 0..self.iterations {
            let after = if self.iterations > 1 { format!(", iteration {iteration}") } else { String::new() };
            let mut before: Vec<u32> = list.last.take().into_iter().collect();
            for layer in model.layers.iter().filter(|layer| layer.multiply_adds > 0) {
                let kind = Kind::Compute(self.compute(layer, LayerPass::Forward));
                before = vec![list.add(format!("{} forward{after}", layer.name), kind, Some(DEVICE), &before)];
            }
            let mut reductions = Vec::new();
            let mut gradients = 0;
            for layer in model.layers.iter().rev().filter(|layer| layer.multiply_adds > 0) {
                let kind = Kind::Compute(self.compute(layer, LayerPass::Backward));
                before = vec![list.add(format!("{} backward{after}", layer.name), kind, Some(DEVICE), &before)];
                gradients += layer.parameters;
                if self.reduce == GradientReduction::Layers {
                    let kind = self.all_reduce(layer.parameters);
                    reductions.push(list.add(format!("{} gradients{after}", layer.name), kind, Some(NETWORK), &before));
                }
            }
            if self.reduce == GradientReduction::End {
                reductions.push(list.add(
                    format!("gradients{after}"),
                    self.all_reduce(gradients),
                    Some(NETWORK),
                    &before,
                ));
            }
            reductions.extend(before);
            list.last = Some(list.add(format!("step{after}"), Kind::Nothing, None, &reductions));
        }
        list.nodes
    }

    /// Gradients of this many elements are added up.
    fn all_reduce(&self, elements: u64) -> Kind {
        let bytes = elements.saturating_mul(self.element_bytes);
        Kind::Collective(Collective { op: CollectiveOp::AllReduce, group: 0, bytes, root: 0 })
    }
}

/// A trace in which all ranks do one all-reduce of this many bytes and nothing else.
pub fn all_reduce(ranks: u32, bytes: u64) -> Trace {
    let kind = Kind::Collective(Collective { op: CollectiveOp::AllReduce, group: 0, bytes, root: 0 });
    let mut list = NodeList::default();
    list.add("gradients".to_owned(), kind, Some(NETWORK), &[]);
    of_ranks(ranks, "all-reduce", &list.nodes)
}

/// A trace in which all ranks do the same.
fn of_ranks(ranks: u32, name: &str, nodes: &[Node]) -> Trace {
    let rank = |_| Rank { file: PathBuf::from(name), nodes: nodes.to_vec() };
    let all = Group { name: String::new(), ranks: (0..ranks).collect() };
    Trace { format: Format::Chakra, ranks: (0..ranks).map(rank).collect(), groups: vec![all], hash: 0 }
}

#[derive(Default)]
struct NodeList {
    nodes: Vec<Node>,
    /// What the next iteration waits for.
    last: Option<u32>,
}

impl NodeList {
    fn add(&mut self, name: String, kind: Kind, stream: Option<u16>, before: &[u32]) -> u32 {
        let id = self.nodes.len() as u32;
        let mut waits: Vec<Dependency> = before.iter().map(|&node| Dependency { node, start: false }).collect();
        waits.sort_unstable();
        self.nodes.push(Node { id: id.into(), name: name.into(), kind, stream, waits: waits.into() });
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durations, chakra, schedule};

    const TRAINING: Training = Training {
        ranks: 4,
        minibatch: 32,
        iterations: 2,
        element_bytes: 4,
        peak_tflops: 100.0,
        bandwidth_gbps: None,
        reduce: GradientReduction::Layers,
    };

    fn vgg() -> Model {
        Model::read("vgg16").unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn all_gradients_are_added_up_once_an_iteration() {
        for reduce in [GradientReduction::Layers, GradientReduction::End] {
            let training = Training { reduce, ..TRAINING };
            let (trace, matched) = Trace::checked(training.trace(&vgg())).unwrap();
            let totals = trace.totals();
            let members = u64::from(training.ranks) * u64::from(training.iterations);
            assert_eq!(totals.collective_bytes, 4 * 138_357_544 * members);
            assert_eq!(matched.collectives.len(), if reduce == GradientReduction::Layers { 32 } else { 2 });
            // Three times forward, but for the gradient of the image.
            let image = 2 * 64 * 27 * 224 * 224;
            assert_eq!(totals.operations, (6 * 15_470_264_320 - image) * 32 * members);
            assert_eq!(totals.nodes["compute"], 2 * 16 * members);
        }
    }

    #[test]
    fn all_reduces_go_backwards_behind_their_layer() {
        let nodes = TRAINING.nodes(&vgg());
        let find = |name: &str| nodes.iter().position(|node| &*node.name == name).unwrap();
        let order: Vec<&str> = nodes
            .iter()
            .filter(|node| matches!(node.kind, Kind::Collective(_)) && node.name.ends_with("iteration 0"))
            .map(|node| node.name.split(' ').next().unwrap())
            .collect();
        assert_eq!((order.len(), order[0], order[2], order[15]), (16, "fc8", "fc6", "conv1_1"));
        let of = |name: &str| nodes[find(name)].waits.iter().map(|wait| wait.node as usize).collect::<Vec<_>>();
        assert_eq!(of("fc6 gradients, iteration 0"), [find("fc6 backward, iteration 0")]);
        assert_eq!(of("conv5_3 backward, iteration 0"), [find("fc6 backward, iteration 0")]);
        assert_eq!(of("conv1_1 forward, iteration 1"), [find("step, iteration 0")]);
        assert_eq!(of("step, iteration 0").len(), 17);
        for reduce in [GradientReduction::Layers, GradientReduction::End] {
            let training = Training { reduce, ..TRAINING };
            assert_eq!(training.nodes_of_a_rank(&vgg()), training.nodes(&vgg()).len() as u64);
        }
    }

    #[test]
    fn time_is_that_of_a_roofline() {
        let time = |training: &Training| {
            let (trace, matched) = Trace::checked(training.trace(&vgg())).unwrap();
            schedule(&trace, &matched, Durations::MEASURED).unwrap().ends[0]
        };
        let one = Training { iterations: 1, ..TRAINING };
        let operations = (6 * 15_470_264_320 - 2 * 64 * 27 * 224 * 224) * 32;
        assert!(time(&one).abs_diff(operations / 100) < 100, "{} {operations}", time(&one));
        assert_eq!(time(&one), one.compute_ps(&vgg()));
        assert_eq!(time(&TRAINING), 2 * time(&one));
        // A memory so slow that every byte counts.
        let slow = Training { bandwidth_gbps: Some(1e-2), ..one };
        let (trace, _) = Trace::checked(slow.trace(&vgg())).unwrap();
        let bytes: u64 = trace.ranks[0]
            .nodes
            .iter()
            .map(|node| if let Kind::Compute(compute) = node.kind { compute.bytes } else { 0 })
            .sum();
        let expected = bytes as f64 * 8.0 * 1e5;
        assert!((time(&slow) as f64 / expected - 1.0).abs() < 1e-9);
    }

    /// What is written is read back; Chakra has time in whole us.
    #[test]
    fn files_hold_the_same_trace() {
        let folder = tempfile::tempdir().unwrap();
        let trace = TRAINING.trace(&vgg());
        let prefix = folder.path().join("vgg16");
        for (rank, bytes) in chakra::write(&trace).into_iter().enumerate() {
            std::fs::write(folder.path().join(format!("vgg16.{rank}.et")), bytes).unwrap();
        }
        let (read, _) = Trace::read(&prefix, &[]).unwrap_or_else(|error| panic!("{error}"));
        for (read, written) in read.ranks[3].nodes.iter().zip(&trace.ranks[3].nodes) {
            let mut expected = written.clone();
            if let Kind::Compute(compute) = &mut expected.kind {
                compute.ps = compute.ps.next_multiple_of(1_000_000);
            }
            assert_eq!(*read, expected);
        }
        assert_eq!(read.ranks[0].nodes.len(), trace.ranks[0].nodes.len());
    }
}
