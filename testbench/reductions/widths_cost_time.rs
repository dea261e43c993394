//! Widths cost time (H-WIDTH-1) in the armed family: a frame of n flits over L links of s cycles a flit, stored whole K times on
//! its way (by the engines of the way up, at the root and at the leaf), takes T(1) + (L + (n - 1) K) (s - 1).

use crate::support::{passed, refused, round, text};

/// Flits of a frame: 84 bytes in words of 64 bits.
const FLITS: u64 = (84 * 8_u64).div_ceil(64);

fn scenario(topology: &str, link: &str) -> String {
    format!(
        "family = \"armed\"\n[topology]\n{topology}[link]\nlatency_cycles = 5\n{link}[[armed.reduction]]\n\
         op = \"flt-sum-near\"\nrounds = 1\n"
    )
}

fn latency(topology: &str, link: &str) -> u64 {
    let document = text(&scenario(topology, link));
    passed(&document);
    round(&document, 0).latency_cycles.expect("it ended")
}

/// Holds a topology against the law; `hops` are the links between switches from the root to the farthest leaf.
fn law(topology: &str, hops: u64) {
    let wide = latency(topology, "");
    // Up to the end point at the root and down again; an engine at every switch of the way up.
    let (links, stores) = (2 * (hops + 2), hops + 1 + 2);
    for width in [8, 13, 16, 22, 32, 64, 512] {
        let s = 64_u64.div_ceil(width);
        let narrow = latency(topology, &format!("width_bits = {width}\nlocal_width_bits = {width}\n"));
        let expected = wide + (links + (FLITS - 1) * stores) * (s - 1);
        assert_eq!(narrow, expected, "{topology}, {width} wires");
    }
}

#[test]
fn on_trees() {
    for branching in [&[1, 1][..], &[2, 1], &[1, 1, 1], &[4, 4], &[2, 2, 2]] {
        law(&format!("kind = \"tree\"\nbranching = {branching:?}\n"), branching.len() as u64 - 1);
    }
}

#[test]
fn on_meshes_and_the_die() {
    // The root is end point 0, in a corner.
    for size in [&[3][..], &[5], &[3, 3], &[2, 4]] {
        law(&format!("kind = \"mesh\"\nsize = {size:?}\n"), size.iter().map(|side| side - 1).sum());
    }
    // A step in the tile, and three tiles.
    law("kind = \"die\"\n", 4);
}

#[test]
fn a_frame_is_of_words() {
    let wrong = refused(&scenario("kind = \"mesh\"\nsize = [2]\n", "flit_bits = 32\n"));
    assert!(wrong.contains("`link.width_bits` of less than 64"), "{wrong}");
}
