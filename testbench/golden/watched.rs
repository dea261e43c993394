//! Which signals of a scenario stand in its golden waveform, and which of those in the picture.

use watershed::fabric::topology::Shape;
use watershed::scenario::Scenario;
use watershed::scenario::config::Family;

/// Part of a waveform.
#[derive(Debug, Clone)]
pub struct Watched {
    /// Globs of the waveform.
    pub signals: Vec<String>,
    /// First and last cycle of the waveform.
    pub cycles: (u64, u64),
    /// Globs of the picture.
    pub picture: Vec<String>,
    /// First and last cycle of the picture.
    pub picture_cycles: (u64, u64),
    /// Whether the message ladder is a golden too.
    pub ladder: bool,
    /// Whether the embeddings are a golden too.
    pub embedding: bool,
}

/// What to look at: of scenarios that are not named here the engines and the memories, from the start on; of
/// plain fabrics a corner switch.
pub fn watched(scenario: &Scenario) -> Watched {
    let start = scenario.collectives.iter().map(|collective| collective.start_cycle).min().unwrap_or(0);
    let (signals, cycles, picture, picture_cycles): (&[&str], _, &[&str], _) = match scenario.name.as_str() {
        // The root's engine with its two operands, and the way of the result down to core 0.
        "allreduce-die" | "allreduce-die-deep" => (
            &[
                "**.sw4.switch.ceng.*",
                "**.sw4.switch.ceng.slot{5,6}.*",
                "**.sw4.switch.out*.{valid,vc,seq,word}",
                "**.memory.{job,calls,cce,icu,mtp,stp}*.**",
            ],
            (0, 120),
            &[
                "**.sw4.switch.ceng.*",
                "**.sw4.switch.ceng.slot{5,6}.*",
                "**.sw4.switch.out5.{valid,vc,seq}",
                "**.core0.memory.{job,calls,cce,icu,mtp,stp}*.**",
            ],
            (28, 52),
        ),
        // A link whose buffer is too small: three flits a round trip.
        "narrow-buffers" => (
            &["**.core1.switch.out2.{valid,seq}", "**.core1.switch.out2.credits0.*", "**.ceng.*"],
            (0, 120),
            &["**.core1.switch.out2.{valid,seq}", "**.core1.switch.out2.credits0.*"],
            (0, 25),
        ),
        "background-95" => (
            &["**.core1.switch.out2.{valid,vc,seq}", "**.core1.switch.in7.vc*.flits", "**.ceng.*"],
            (start, start + 95),
            &["**.core1.switch.out2.{valid,vc,seq}"],
            (start, start + 25),
        ),
        // Switches of many ports and channels: what leaves the corner is enough.
        "hyperx-uniform" | "booksim-flatfly" => {
            let outputs: &[&str] = &["**.s0_0.switch.out*.{valid,vc,seq}"];
            (outputs, (0, 60), outputs, (0, 25))
        }
        // The message in switches and queues, from the send to the last report.
        "multicast-fig5" => (
            &["**.switch.out*.{valid,seq}", "**.memory.{job,calls,cce,icu,mtp,stp}*.**"],
            (0, 24),
            &[
                "**.core0.switch.out{2,3,4,5}.valid",
                "**.{sw0,sw4}.switch.out5.valid",
                "**.core4.switch.out{2,3,4,7}.valid",
                "**.core7.memory.mtp0.**",
                "**.core7.memory.cce.queue0.{count,oldest}",
            ],
            (0, 20),
        ),
        "push-interrupts" => (
            &["**.core1.memory.{job,calls,cce,icu,mtp,stp}*.**"],
            (40, 200),
            &[
                "**.core1.memory.{mtp,stp}0.**.state",
                "**.core1.memory.cce.queue1.{count,events}",
                "**.core1.memory.icu.*",
            ],
            (60, 95),
        ),
        "programs-collectives" => (
            &["**.core{0,7}.memory.{job,calls,cce,icu,mtp,stp}*.**"],
            (0, 800),
            &["**.core{0,7}.memory.mtp0.**.state", "**.core{0,7}.memory.calls.*"],
            (340, 370),
        ),
        "hosts-die" => {
            (&["**.core0.memory.host*.{state,round}"], (0, 200_000), &["**.core0.memory.host0.*"], (10_290, 10_315))
        }
        // Cores arrive late here.
        "barrier-die" => (
            &["**.ceng.*", "**.memory.{job,calls,cce,icu,mtp,stp}*.**"],
            (0, 260),
            &["**.core0.switch.ceng.*", "**.memory.**.state"],
            (195, 219),
        ),
        "broadcast-die" => (
            &["**.switch.out*.{valid,seq}", "**.memory.{job,calls,cce,icu,mtp,stp}*.**"],
            (0, 60),
            &[
                "**.core3.switch.out4.{valid,seq}",
                "**.sw3.switch.out5.{valid,seq}",
                "**.core7.memory.{job,calls,cce,icu,mtp,stp}*.**",
            ],
            (0, 25),
        ),
        // Nodes are blocked from their arrival on, T1 to T4, until all are answered.
        "barrier-t1-t4" => (
            &["**.node*.part0.*", "**.engine.ce.context0.*"],
            (0, 300),
            &["**.node*.part0.state", "**.engine.ce.context0.{state,p_count}"],
            (224, 250),
        ),
        // The root's engine, and that of a switch where inputs from outside are joined.
        "fig2-hyperx" => {
            let root: &[&str] = &["node2_2.**.ceng.*", "node2_2.**.memory.{job,calls,cce,icu,mtp,stp}*.**"];
            (root, (0, 320), &["node2_2.**.ceng.*"], (115, 140))
        }
        "fig3-node" => (
            &["node1_1.socket0.tile0.core0.switch.ceng.*", "node0_1.socket{0,1}.tile0.core0.switch.ceng.*"],
            (0, 500),
            &["node1_1.socket0.tile0.core0.switch.ceng.*"],
            (365, 390),
        ),
        "nodes-disjoint" => (
            &["node{0_0,1_0,1_1}.socket0.tile0.core0.switch.ceng.{state,operands,in_flight}"],
            (0, 400),
            &["node1_{0,1}.socket0.tile0.core0.switch.ceng.*"],
            (172, 197),
        ),
        "segments-nodes" => (
            &["node{4,5}.socket1.tile0.core1.switch.ceng.{state,operands,in_flight}"],
            (0, 500),
            &["node4.socket1.tile0.core1.switch.ceng.*"],
            (300, 325),
        ),
        "mesh-allreduce" => {
            (&["**.ceng.*"], (0, 100), &["**.s3_{3,4}.switch.ceng.*", "**.s4_{3,4}.switch.ceng.*"], (20, 45))
        }
        "allreduce-k5" => (&["**.k{0,1}.switch.ceng.*"], (0, 60), &["**.k0.switch.ceng.*"], (15, 40)),
        "allreduce-torus" => (&["**.s{0_0,1_0,2_0,1_1}.switch.ceng.*"], (0, 100), &["**.s1_0.switch.ceng.*"], (30, 55)),
        "face-off-piuma" => (&["**.s{1_1,2_2}.switch.ceng.*"], (0, 100), &["**.s2_2.switch.ceng.*"], (20, 45)),
        "face-off-hosts" => {
            let one: &[&str] = &["**.s0_0.node.host*.{state,round}"];
            (one, (0, 1900), one, (745, 770))
        }
        _ => match scenario.family {
            Family::Piuma => (
                &["**.ceng.*", "**.memory.{job,calls,cce,icu,mtp,stp}*.**"],
                (start, start + 95),
                &["**.core{0,4}.switch.ceng.*", "**.core0.memory.{job,calls,cce,icu,mtp,stp}*.**"],
                (start + 25, start + 50),
            ),
            // The engine above the root's switch, or of the first switch.
            Family::Armed => (
                &[
                    "**.{top,s0_0,t0_0,g0_0}.P*.engine.descriptor0.{state,seqno,count,wait_count}",
                    "**.{top,s0_0,t0_0,g0_0}.P*.engine.{active,merged,passed}",
                ],
                (0, 400),
                &["**.{top,s0_0,t0_0,g0_0}.P*.engine.descriptor0.{state,seqno,count}"],
                (88, 113),
            ),
            // The first switch's engine, or that at the top of a tree.
            Family::Pbv => (
                &[
                    "**.{sw0000,s0,s0_0,top}.engine.ce.context0.**",
                    "**.{sw0000,s0,s0_0,top}.engine.{output_queue,frames_in,frames_out}",
                    "**.{sw0000,s0,s0_0,top}.engine.sending.*",
                ],
                (0, 1500),
                &[
                    "**.{sw0000,s0,s0_0,top}.engine.ce.context0.{state,p_count}",
                    "**.{sw0000,s0,s0_0,top}.engine.sending.*",
                ],
                (600, 626),
            ),
            Family::Fabric => (
                &["**.{s0_0,t0_0,g0_0,r0}.switch.**", "**.s0_1.switch.out*.{valid,vc,seq}"],
                (0, 100),
                &["**.{s0_0,t0_0,g0_0,r0}.switch.out*.{valid,vc,seq}"],
                (0, 25),
            ),
        },
    };
    let owned = |globs: &[&str]| globs.iter().map(ToString::to_string).collect();
    let small = scenario.name.starts_with("fig");
    let nodes = matches!(scenario.topology.shape, Shape::Nodes(_));
    Watched {
        signals: owned(signals),
        cycles,
        picture: owned(picture),
        picture_cycles,
        ladder: small && matches!(scenario.family, Family::Armed | Family::Pbv)
            || matches!(&*scenario.name, "two-groups" | "unmerged-chain" | "barrier-die" | "multicast-fig5"),
        embedding: nodes,
    }
}
