//! Widths cost time (H-WIDTH-1) in the armed family: a frame of n flits over L links of s cycles a flit, stored whole K times on
//! its way (by the engines of the way up, at the root and at the leaf), takes T(1, 1) + L (s - 1) + (n - 1) K s.

use crate::support::{passed, refused, round, text};

/// Flits of a frame of 84 bytes.
fn flits(bits: u64) -> u64 {
    (84 * 8_u64).div_ceil(bits)
}

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
fn law(topology: &str, hops: u64, sizes: &[u64], widths: &[u64]) {
    // Up to the end point at the root and down again; an engine at every switch of the way up.
    let (links, stores) = (2 * (hops + 2), hops + 1 + 2);
    for &bits in sizes {
        let wide = latency(topology, &format!("flit_bits = {bits}\n"));
        for &width in widths {
            let s = bits.div_ceil(width);
            let keys = format!("flit_bits = {bits}\nwidth_bits = {width}\nlocal_width_bits = {width}\n");
            let expected = wide + (links + (flits(bits) - 1) * stores) * (s - 1);
            assert_eq!(latency(topology, &keys), expected, "{topology}, {bits} bits, {width} wires");
        }
    }
}

const WIDTHS: [u64; 9] = [8, 13, 16, 22, 32, 64, 100, 256, 512];

#[test]
fn on_trees() {
    for branching in [&[1, 1][..], &[2, 1], &[1, 1, 1], &[4, 4], &[2, 2, 2]] {
        law(&format!("kind = \"tree\"\nbranching = {branching:?}\n"), branching.len() as u64 - 1, &[64], &WIDTHS);
    }
}

#[test]
fn on_meshes_and_the_die() {
    // The root is end point 0, in a corner.
    for size in [&[3][..], &[5], &[3, 3], &[2, 4]] {
        law(&format!("kind = \"mesh\"\nsize = {size:?}\n"), size.iter().map(|side| side - 1).sum(), &[64], &WIDTHS);
    }
    // A step in the tile, and three tiles.
    law("kind = \"die\"\n", 4, &[64], &WIDTHS);
}

const SIZES: [u64; 11] = [32, 96, 128, 160, 224, 256, 320, 512, 672, 1024, 4096];

/// Stages of an engine's unit: a frame for a descriptor follows another after so many cycles.
const STAGES: u64 = 3;

#[test]
fn of_flits_of_every_size() {
    // From one size to another: what each store costs, and that at an engine with c children the frames of the others come
    // first, each in its flits or in the time of the unit.
    for branching in [&[1, 1][..], &[1, 1, 1], &[2, 1], &[4, 4], &[2, 2, 2]] {
        let (topology, hops) = (format!("kind = \"tree\"\nbranching = {branching:?}\n"), branching.len() as u64 - 1);
        let frames: u64 = branching.iter().map(|children| children - 1).sum();
        let times = |n: u64| (n - 1) * (hops + 3) + frames * n.max(STAGES);
        let words = latency(&topology, "");
        for bits in SIZES {
            let expected = words + times(flits(bits)) - times(flits(64));
            assert_eq!(latency(&topology, &format!("flit_bits = {bits}\n")), expected, "{topology}, {bits} bits");
        }
        law(&topology, hops, &[32, 128, 256, 512, 1024], &[22, 64, 512]);
    }
}

#[test]
fn of_flits_of_every_size_on_meshes_and_the_die() {
    for (size, hops) in [(&[3][..], 2), (&[3, 2], 3)] {
        law(&format!("kind = \"mesh\"\nsize = {size:?}\n"), hops, &SIZES, &[22, 64, 512]);
    }
    law("kind = \"die\"\n", 4, &[128, 256, 512], &[32, 512]);
}

/// Ethernet NICs: 98 bytes on the way to and from the adapter at the switch port, which stores a frame whole in both directions.
#[test]
fn of_flits_of_every_size_behind_ethernet_headers() {
    let ethernet = |bits: u64| (98 * 8_u64).div_ceil(bits);
    for branching in [&[1, 1][..], &[2, 1], &[1, 1, 1], &[4, 4]] {
        let (topology, hops) = (format!("kind = \"tree\"\nbranching = {branching:?}\n"), branching.len() as u64 - 1);
        let ends: Vec<u64> = (0..=branching.iter().product()).collect();
        let latency = |keys: &str| latency(&topology, &format!("{keys}[armed]\nethernet = {ends:?}\n"));
        let frames: u64 = branching.iter().map(|children| children - 1).sum();
        // Stored whole: by the engines of the way up and the adapters on the way to the root and to the leaf; in the longer form
        // by the adapters on the way from there, by the root and by the leaf.
        let stores = |bits: u64| (flits(bits) - 1) * (hops + 3) + (ethernet(bits) - 1) * 4;
        let times = |bits: u64| stores(bits) + frames * flits(bits).max(STAGES);
        let words = latency("");
        for bits in SIZES {
            let wide = latency(&format!("flit_bits = {bits}\n"));
            assert_eq!(wide, words + times(bits) - times(64), "{topology}, {bits} bits");
            for width in [22, 64, 512].into_iter().filter(|_| frames == 0) {
                let s = bits.div_ceil(width);
                let keys = format!("flit_bits = {bits}\nwidth_bits = {width}\nlocal_width_bits = {width}\n");
                // Adapters and engines are in ports of switches, and what is between those takes a flit a cycle: the first
                // engine and the adapter at the root get their frames over such wires.
                let expected = wide + (2 * (hops + 2) + stores(bits) - 2 * (flits(bits) - 1)) * (s - 1);
                assert_eq!(latency(&keys), expected, "{topology}, {bits} bits, {width} wires");
            }
        }
    }
}

#[test]
fn a_frame_is_cut_into_multiples_of_32_bits() {
    for bits in [8, 16, 33, 100] {
        let wrong = refused(&scenario("kind = \"mesh\"\nsize = [2]\n", &format!("flit_bits = {bits}\n")));
        assert!(wrong.contains("a multiple of 32 from 32 to 4096"), "{wrong}");
    }
}
