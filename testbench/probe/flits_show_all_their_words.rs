//! Every word of a flit is in the waveform, whatever its size (H-WIDTH-1): from output registers alone each frame on each link is put
//! together again, bit by bit. Its check sum, computed here, says that none is wrong, and its data are those that the test gave.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use watershed::probe::wave_in::WaveFile;
use watershed::scenario::config::Wave;
use watershed::scenario::load_text;
use watershed::scenario::run::{RunOptions, WaveOptions, run};

use crate::player::Player;

const LEAVES: u64 = 4;

/// What participant `rank` contributes as element `k`.
fn operand(rank: u64, k: u64) -> u64 {
    (rank << 56) + 0x0123_4567_89ab * (k + 1) + (rank + k) * 0x1_0000_0001
}

fn scenario(family: &str, elements: u64, link: &str) -> String {
    let row = |rank| (0..elements).map(|k| operand(rank, k).to_string()).collect::<Vec<_>>().join(", ");
    let rows: Vec<String> = (0..=LEAVES).map(|rank| format!("[{}]", row(rank))).collect();
    format!(
        "[clock]\nfrequency_mhz = 1000\n[topology]\nkind = \"tree\"\nbranching = [2, 2]\n[link]\nlatency_cycles = 3\n{link}\n\
         [[job]]\nname = \"j\"\nengine = \"{family}\"\nop = \"sum\"\ndtype = \"i64\"\nelements = {elements}\n\
         participants = [0, 1, 2, 3, 4]\ndata = {{ values = [{}] }}\n",
        rows.join(", ")
    )
}

/// Bits of a flit of this size, the first one first.
fn bits(words: &[u128], size: usize) -> impl Iterator<Item = bool> {
    (0..size).map(|bit| words[bit / 64] >> (63 - bit % 64) & 1 == 1)
}

fn bytes(bits: &[bool]) -> Vec<u8> {
    bits.chunks(8).map(|byte| byte.iter().fold(0, |of, &bit| of << 1 | u8::from(bit))).collect()
}

/// CRC-32 of Ethernet, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

/// CRC-24 of OpenPGP, bit by bit.
fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0xb7_04ce, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte) << 16, |crc, _| {
            (crc << 1 ^ if crc >> 23 & 1 == 1 { 0x86_4cfb } else { 0 }) & 0xff_ffff
        })
    })
}

/// The frame that so many flits are, if they are one: its bytes.
type IsFrame = fn(bits: &[bool], flits: usize, size: usize) -> Option<Vec<u8>>;

/// A frame of the armed family, or the Ethernet form of one without its header: the CRC is in the last four bytes.
fn is_armed(bits: &[bool], flits: usize, size: usize) -> Option<Vec<u8>> {
    [(84_usize, 0), (98, 14)].into_iter().find_map(|(length, header)| {
        let bytes = (flits == (8 * length).div_ceil(size)).then(|| bytes(&bits[..8 * length]))?;
        let (checked, crc) = bytes.split_at(length - 4);
        (crc32(checked).to_be_bytes() == crc && !bits[8 * length..].contains(&true)).then(|| checked[header..].to_vec())
    })
}

/// A frame of the PBV family: its header says how long it is, and has the CRC.
fn is_pbv(bits: &[bool], flits: usize, size: usize) -> Option<Vec<u8>> {
    let header = bytes(bits.get(..256)?);
    let length = 32 + 4 * (usize::from(header[2] & 3) << 8 | usize::from(header[3]));
    if flits != (8 * length).div_ceil(size) {
        return None;
    }
    let mut bytes = bytes(&bits[..8 * length]);
    let crc = u32::from_be_bytes(bytes[28..32].try_into().unwrap()) & 0xff_ffff;
    bytes[29..32].fill(0);
    (crc24(&bytes) == crc && !bits[8 * length..].contains(&true)).then_some(bytes)
}

/// Plays a waveform. Returns the frames that are on links, and how many heads of queues were seen.
fn frames(path: &Path, size: usize, longest: usize, is_frame: IsFrame) -> (Vec<Vec<u8>>, usize) {
    let mut player = Player::new(WaveFile::open(path).unwrap());
    let words = |player: &Player, scope: &str, word: &str, more: &str| -> Option<Vec<u128>> {
        let behind = (1..size.div_ceil(64)).map(|k| format!("{scope}{more}{k}.word"));
        std::iter::once(format!("{scope}{word}")).chain(behind).map(|name| player.known(&name)).collect()
    };
    let outputs =
        player.scopes(".valid").into_iter().filter(|scope| scope.rsplit('.').next().unwrap().starts_with("out"));
    let outputs: Vec<String> = outputs.collect();
    let queues = player.scopes(".head_word");
    assert!(!outputs.is_empty() && !queues.is_empty());
    let (mut under_way, mut frames) = (BTreeMap::<(usize, u128), (usize, Vec<bool>)>::new(), Vec::new());
    let (mut sent, mut heads) = (HashSet::new(), HashSet::new());
    let mut cycle = 0;
    loop {
        let more = player.go_to(cycle);
        for (port, scope) in outputs.iter().enumerate() {
            if player.get(&format!("{scope}.valid")) == 0 {
                continue;
            }
            let get = |name: &str| player.get(&format!("{scope}.{name}"));
            let flit = words(&player, scope, ".word", ".more").expect("a flit that is valid has all its words");
            let (flits, gathered) = under_way.entry((port, get("vc"))).or_default();
            *flits += 1;
            gathered.extend(bits(&flit, size));
            assert!(gathered.len() < longest + size, "{scope} in cycle {cycle}: {flits} flits are no frame");
            if let Some(frame) = is_frame(gathered, *flits, size) {
                frames.push(frame);
                (*flits, *gathered) = Default::default();
            }
            sent.insert((get("id"), get("seq"), flit));
        }
        for scope in &queues {
            if let Some(head) = words(&player, scope, ".head_word", ".head_more") {
                let [id, seq] = ["head_id", "head_seq"].map(|name| player.get(&format!("{scope}.{name}")));
                assert!(sent.contains(&(id, seq, head.clone())), "{scope} in cycle {cycle}: {head:x?} was never sent");
                heads.insert((id, seq, head));
            }
        }
        if !more {
            break;
        }
        cycle += 1;
    }
    assert!(under_way.values().all(|(flits, _)| *flits == 0), "flits that are no frame: {under_way:?}");
    (frames, heads.len())
}

fn of_a_run(text: &str, size: usize, longest: usize, is_frame: IsFrame) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let wave =
        WaveOptions::of(folder.path().join("wave.vcd"), Wave { signals: vec!["**".to_owned()], ..Wave::default() });
    let loaded = load_text("test", text, Path::new("."), "test", &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let result = run(&loaded, &RunOptions { wave: Some(&wave), ..RunOptions::default() }).unwrap();
    assert!(result.document.passed(), "{text}");
    let (frames, heads) = frames(&wave.path, size, longest, is_frame);
    assert!(frames.len() > 20 && heads > 20, "{} frames, {heads} heads", frames.len());
    frames
}

/// Whether a frame has the words that `of` gives for each element behind so many bytes.
fn has(frames: &[Vec<u8>], behind: usize, elements: u64, of: impl Fn(u64) -> u64) -> bool {
    let data: Vec<u8> = (0..elements).flat_map(|k| of(k).to_be_bytes()).collect();
    frames.iter().any(|frame| frame.get(behind..behind + data.len()) == Some(&data))
}

fn hold(frames: &[Vec<u8>], behind: usize, elements: u64, what: &str) {
    for rank in 0..=LEAVES {
        // The root's own words are on no link of the armed family.
        assert!(rank == 0 || has(frames, behind, elements, |k| operand(rank, k)), "{what}: words of rank {rank}");
    }
    let sum = |k| (0..=LEAVES).fold(0u64, |sum, rank| sum.wrapping_add(operand(rank, k)));
    assert!(has(frames, behind, elements, sum), "{what}: the sums");
}

#[test]
fn of_armed_frames_and_their_ethernet_form() {
    for size in [32, 64, 96, 128, 512] {
        let text = scenario("armed", 4, &format!("flit_bits = {size}\n[armed]\nethernet = [1, 2]"));
        hold(&of_a_run(&text, size, 8 * 98, is_armed), 48, 4, &format!("{size} bits"));
    }
}

#[test]
fn of_pbv_frames() {
    for size in [32, 64, 96, 128, 512] {
        let text = scenario("pbv", 7, &format!("flit_bits = {size}"));
        hold(&of_a_run(&text, size, 8 * 4112, is_pbv), 32, 7, &format!("{size} bits"));
    }
}
