//! Links that are narrower than a flit, and engines in their wires: who waits for a link is woken when it is free (K-CLK-2), and
//! reduction frames go before what passes (K-ARB-1).

use watershed::scenario::result::Document;

use crate::share;
use crate::support::{pass, walked};

/// One job over a mesh, with more keys.
fn job(engine: &str, more: &str) -> String {
    format!("[topology]\nkind = 'mesh'\nsize = [2, 2]\n{more}\n[[job]]\nengine = '{engine}'\nelements = 4\n")
}

fn exact(document: &Document, what: &str) {
    assert!(document.passed(), "{what}: {:?}", document.checks);
}

/// One case in three in `make test`.
#[test]
fn engines_at_every_place_are_woken_when_a_link_is_free() {
    let places = ["attach = 'link'", "attach = 'link'\nper_switch = 2", "attach = 'node'\nper_switch = 2"];
    let cases = places.into_iter().flat_map(|place| [8, 16, 32, 63].map(|width| (place, width)));
    let cases =
        cases.flat_map(|(place, width)| ["", "rate = 0.02", "rate = 0.2"].map(|traffic| (place, width, traffic)));
    for (place, width, traffic) in share::one_in(3, cases) {
        let traffic = if traffic.is_empty() {
            String::new()
        } else {
            format!("[[traffic]]\npattern = 'uniform'\npacket_flits = 2\n{traffic}\nstop_cycle = 1500\n")
        };
        let link = format!("concentration = 2\n[link]\nwidth_bits = {width}\nlocal_width_bits = {width}");
        let text = job("pbv", &format!("{link}\n[pbv.engine]\n{place}\n{traffic}"));
        exact(&walked(&text, &[]), &format!("{place}, {width} bits, {traffic}"));
    }
}

#[test]
fn other_engines_are_woken_too() {
    for engine in ["piuma", "armed", "software"] {
        for width in [16, 63] {
            let text = job(engine, &format!("[link]\nwidth_bits = {width}"));
            exact(&walked(&text, &[]), &format!("{engine}, {width} bits"));
        }
    }
}

/// Traffic that takes a link whenever it falls free would hold a frame for ever.
#[test]
fn reduction_frames_go_before_what_passes() {
    for (topology, width, rate) in [("mesh", 63, 0.6), ("mesh", 32, 0.6), ("hyperx", 16, 0.3)] {
        let text = format!(
            "[topology]\nkind = '{topology}'\nsize = [4]\n[link]\nwidth_bits = {width}\n[switch]\npipeline_stages = 2\n\
             [[traffic]]\npattern = 'neighbour'\nrate = {rate}\n[[job]]\nengine = 'armed'\nop = 'max'\nelements = 4\n"
        );
        let document = pass(&text, &[]);
        assert!(document.cycles < 20_000, "{topology}, {width} bits: {} cycles", document.cycles);
    }
}
