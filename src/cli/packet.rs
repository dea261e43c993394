//! `watershed packet`: frames of the PBV family, taken apart and put together.

use std::fmt::Write;

use clap::{Args, Subcommand};
use serde_json::{Map, Value as Json, json};

use super::frame::bytes_of;
use super::{Exit, print, print_error};
use watershed_arith::{DType, Op, Round};
use watershed_pbv_interface::packet::{
    Body, ConfigRecord, Control, Groups, Header, InitRecord, Message, NO_DEVICE, Packet, Status,
};

/// Take a packet of the PBV family apart, or put one together.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed packet encode command --to 0x0010c000 --from 1 --op sum --cc-id 5
  watershed packet encode write --to 0x0000c002 --from 1 --words 0x10020 | watershed packet decode -
  watershed packet encode initialisation --to 0xc000 --pbv 0x1f --data-words 128

Exit status:
  0  the packet is sound
  2  the command line is wrong, or the bytes are no packet")]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Decode(Decode),
    Encode(Box<Encode>),
}

/// Show the fields of a packet given in hexadecimal.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  watershed packet encode write --to 0x0010c002 --words 0x12 | watershed packet decode -")]
struct Decode {
    /// The bytes in hexadecimal, blanks between them allowed; "-" reads the standard input
    #[arg(value_name = "HEX", num_args = 1.., required = true)]
    hex: Vec<String>,
    /// Print the fields as JSON
    #[arg(long)]
    json: bool,
}

/// Print a packet with these fields in hexadecimal.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  watershed packet encode write --to 0x0010c002 --from 1 --words 0x12")]
struct Encode {
    /// Which message, for example command, contribution, satisfied, write, configuration or control
    #[arg(value_name = "MESSAGE")]
    message: Message,
    /// 32-bit destination: device ID and offset
    #[arg(long, value_name = "ADDRESS", default_value = "0", value_parser = number)]
    to: u64,
    /// Requester ID
    #[arg(long, value_name = "ID", default_value = "0", value_parser = number)]
    from: u64,
    /// Transaction number, 14 bits
    #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
    tag: u64,
    /// Operation
    #[arg(long, value_name = "OP", default_value = "barrier")]
    op: Op,
    /// What a control packet asks
    #[arg(long, value_name = "WHAT", default_value = "start")]
    control: Control,
    /// Data type of the lanes
    #[arg(long = "type", value_name = "TYPE", default_value = "u64")]
    dtype: DType,
    /// Rounding
    #[arg(long, value_name = "MODE", default_value = "nearest-even")]
    round: Round,
    /// Collective context, 12 bits
    #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
    cc_id: u64,
    /// PBV entry, 7 bits
    #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
    p_id: u64,
    /// End point that issued the collective
    #[arg(long, value_name = "ID", default_value = "0xffff", value_parser = number)]
    dmu_id: u64,
    /// Participants
    #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
    p_count: u64,
    /// Run of the collective
    #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
    run: u64,
    /// Status
    #[arg(long, value_name = "STATUS", default_value = "ok")]
    status: Status,
    /// No answer is expected
    #[arg(long)]
    posted: bool,
    /// Data is incomplete or wrong
    #[arg(long)]
    error: bool,
    /// For switches only: no end device gets it
    #[arg(long)]
    engines_only: bool,
    /// Sets EP
    #[arg(long)]
    poisoned: bool,
    /// Payload: 64-bit words
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', value_parser = number, num_args = 1)]
    words: Vec<u64>,
    /// configuration: device IDs of the PBV entries of a record for the destination
    #[arg(long, value_name = "ID,ID,...", value_delimiter = ',', value_parser = number, num_args = 1)]
    entries: Vec<u64>,
    /// configuration: which entries are engines, one bit an entry
    #[arg(long, value_name = "BITS", default_value = "0", value_parser = parse_u128)]
    switches: u128,
    /// configuration: watchdog time-out in cycles
    #[arg(long, value_name = "CYCLES", default_value = "0", value_parser = number)]
    timeout: u64,
    /// initialisation: participants, one bit an entry
    #[arg(long, value_name = "BITS", default_value = "0", value_parser = parse_u128)]
    pbv: u128,
    /// initialisation: the engine is the master of the context
    #[arg(long)]
    master: bool,
    /// initialisation: entries that messages go down to, if not those of --pbv
    #[arg(long, value_name = "BITS", value_parser = parse_u128)]
    down: Option<u128>,
    /// initialisation: 64-bit words of data
    #[arg(long, value_name = "N", default_value_t = 0)]
    data_words: u16,
    /// initialisation: groups of an inter-group barrier, the CC_ID of the first and how many
    #[arg(long, value_names = ["CC_ID", "COUNT"], num_args = 2, value_parser = number)]
    groups: Vec<u64>,
    /// Print the fields as well
    #[arg(long)]
    table: bool,
}

fn number(text: &str) -> Result<u64, String> {
    super::frame::number(text)
}

fn parse_u128(text: &str) -> Result<u128, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    parsed.ok_or_else(|| format!("\"{text}\" is no 128-bit number"))
}

pub(super) fn main(arguments: &Arguments) -> Exit {
    let outcome = match &arguments.command {
        Command::Decode(decode) => self::decode(decode),
        Command::Encode(encode) => self::encode(encode),
    };
    match outcome {
        Ok(text) => {
            print(&text);
            Exit::Fine
        }
        Err(error) => {
            print_error(&format_args!("error: {error}"));
            Exit::Bad
        }
    }
}

fn decode(arguments: &Decode) -> Result<String, String> {
    let bytes = bytes_of(&arguments.hex)?;
    let packet = Packet::decode(&bytes).map_err(|error| error.to_string())?;
    Ok(if arguments.json { json_of(&packet) } else { table(&packet) })
}

/// A number that has to fit a field.
fn fits<T: TryFrom<u64>>(name: &str, value: u64, bits: u32) -> Result<T, String> {
    let narrow = T::try_from(value).ok().filter(|_| value >> bits == 0);
    narrow.ok_or_else(|| format!("{name} {value:#x} does not fit {bits} bits"))
}

fn encode(arguments: &Encode) -> Result<String, String> {
    let to: u32 = fits("destination", arguments.to, 32)?;
    let (device, offset) = ((to >> 16) as u16, to as u16);
    let mut header = Header::new(arguments.message, fits("requester", arguments.from, 16)?, device, offset);
    header.tag = fits("tag", arguments.tag, 14)?;
    (header.op, header.control, header.dtype, header.rounding.round) =
        (arguments.op, arguments.control, arguments.dtype, arguments.round);
    header.cc_id = fits("CC_ID", arguments.cc_id, 12)?;
    header.p_id = fits("P_ID", arguments.p_id, 7)?;
    header.dmu_id = fits("DMU_ID", arguments.dmu_id, 16)?;
    header.p_count = fits("P_count", arguments.p_count, 16)?;
    header.run = fits("run", arguments.run, 32)?;
    header.engines_only = arguments.engines_only;
    (header.status, header.posted, header.error, header.tlp.poisoned) =
        (arguments.status, arguments.posted, arguments.error, arguments.poisoned);
    let body = match arguments.message {
        Message::Configuration => {
            let entries = arguments.entries.iter().map(|&entry| fits("device ID", entry, 16));
            let mut record = ConfigRecord::of(device, entries.collect::<Result<_, _>>()?, arguments.switches);
            record.timeout = fits("time-out", arguments.timeout, 32)?;
            Body::Configuration(vec![record])
        }
        Message::Initialisation => {
            let record = InitRecord::barrier(device, arguments.pbv);
            let groups = match arguments.groups[..] {
                [first, count] => {
                    Some(Groups { first: fits("CC_ID", first, 12)?, count: fits("number of groups", count, 8)? })
                }
                _ => None,
            };
            Body::Initialisation(vec![InitRecord {
                words: arguments.data_words,
                master: arguments.master,
                groups,
                down: arguments.down.unwrap_or(arguments.pbv),
                ..record
            }])
        }
        _ => Body::Words(arguments.words.clone()),
    };
    let bytes = Packet { header, body }.encode().map_err(|error| error.to_string())?;
    // What is put together must come apart: a payload that is none of the message's is found here.
    let packet = Packet::decode(&bytes).map_err(|error| error.to_string())?;
    let mut text = String::with_capacity(2 * bytes.len() + 1);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\n');
    if arguments.table {
        text.push_str(&table(&packet));
    }
    Ok(text)
}

/// A field: place, name, value, meaning.
type Row = (String, &'static str, String, String);

fn rows(packet: &Packet) -> Vec<Row> {
    let header = &packet.header;
    let mut rows: Vec<Row> = Vec::new();
    let mut row = |place: &str, name, value: String, meaning: &str| {
        rows.push((place.to_owned(), name, value, meaning.to_owned()));
    };
    let bit = |set: bool| u8::from(set).to_string();
    row("0.23:21", "tc", header.tlp.tc.to_string(), "");
    row("0.20:16", "ohc", header.tlp.ohc.to_string(), "");
    row("0.15:13", "ts", header.tlp.ts.to_string(), "");
    row("0.12:10", "attr", header.tlp.attr.to_string(), "");
    row("1.31:16", "requester", format!("{:#06x}", header.requester), "");
    row("1.15", "ep", bit(header.tlp.poisoned), if header.tlp.poisoned { "poisoned" } else { "" });
    row("1.13:0", "tag", format!("{:#06x}", header.tag), "");
    row("2", "destination", format!("{:#010x}", header.address()), "");
    row("3.31:24", "type", header.message.number().to_string(), header.message.name());
    if header.message == Message::Control {
        row("3.23:16", "operation", header.control.number().to_string(), header.control.name());
    } else {
        row("3.23:16", "operation", header.op.to_string(), "");
    }
    row("3.11", "posted", bit(header.posted), "");
    row("3.10", "error", bit(header.error), "");
    if header.engines_only {
        row("3.9", "engines_only", bit(true), "for switches only");
    }
    row("3.7:0", "status", header.status.number().to_string(), header.status.name());
    row("4.31:20", "cc_id", header.cc_id.to_string(), "");
    row("4.19:16", "dtype", header.dtype.to_string(), "");
    row("4.15:14", "round", header.rounding.round.to_string(), "");
    row("4.13", "ftz", bit(header.rounding.flush_to_zero), "");
    row("4.6:0", "p_id", header.p_id.to_string(), "");
    let issuer = if header.dmu_id == NO_DEVICE { "none" } else { "" };
    row("5.31:16", "dmu_id", format!("{:#06x}", header.dmu_id), issuer);
    row("5.15:0", "p_count", header.p_count.to_string(), "");
    row("6", "run", header.run.to_string(), "");
    row("7.31:24", "flags", header.flags.names().collect::<Vec<_>>().join(" "), "");
    match &packet.body {
        Body::Words(words) => {
            for (k, word) in words.iter().enumerate() {
                row(&format!("p{}", 8 * k), "word", format!("{word:#018x}"), "");
            }
        }
        Body::Configuration(records) => {
            for record in records {
                let ConfigRecord { device, timeout, retries, .. } = record;
                let meaning = format!("time-out {timeout}, {retries} retries, engines {:#x}", record.switches);
                row("", "record", format!("{device:#06x}"), &meaning);
                for (k, entry) in record.entries.iter().enumerate() {
                    row("", "entry", k.to_string(), &format!("{entry:#06x}"));
                }
            }
        }
        Body::Initialisation(records) => {
            for record in records {
                let InitRecord { device, p_count, words, below, .. } = record;
                let master = match (record.master, record.to_source) {
                    (true, true) => "master that hands responses to the source, ",
                    (true, false) => "master, ",
                    _ => "",
                };
                let meaning = format!("{master}{p_count} participants, {words} words, {below} records below");
                row("", "record", format!("{device:#06x}"), &meaning);
                row("", "pbv", format!("{:#x}", record.pbv), "");
                if record.down != record.pbv {
                    row("", "down", format!("{:#x}", record.down), "messages go down to these");
                }
                if record.above != NO_DEVICE {
                    row("", "above", format!("{:#06x}", record.above), "the engine it reports to");
                }
                if let Some(Groups { first, count }) = record.groups {
                    row("", "groups", count.to_string(), &format!("contexts from {first:#05x} on"));
                }
            }
        }
        Body::Missing { pbv, devices } => {
            row("p0", "pbv", format!("{pbv:#x}"), "missing");
            for device in devices {
                row("", "missing", format!("{device:#06x}"), "");
            }
        }
    }
    rows
}

fn table(packet: &Packet) -> String {
    let mut out = String::new();
    for (place, name, value, meaning) in rows(packet) {
        let _ = writeln!(out, "{}", format!("{place:8} {name:12} {value:20} {meaning}").trim_end());
    }
    out
}

fn json_of(packet: &Packet) -> String {
    let header = &packet.header;
    let mut object = Map::new();
    let mut put = |key: &str, value: Json| {
        object.insert(key.to_owned(), value);
    };
    put("message", json!(header.message.name()));
    put("requester", json!(header.requester));
    put("destination", json!(header.address()));
    put("tag", json!(header.tag));
    put("poisoned", json!(header.tlp.poisoned));
    if header.message == Message::Control {
        put("control", json!(header.control.name()));
    } else {
        put("op", json!(header.op.to_string()));
    }
    put("posted", json!(header.posted));
    put("error", json!(header.error));
    if header.engines_only {
        put("engines_only", json!(true));
    }
    put("status", json!(header.status.name()));
    put("cc_id", json!(header.cc_id));
    put("dtype", json!(header.dtype.to_string()));
    put("round", json!(header.rounding.round.to_string()));
    put("flush_to_zero", json!(header.rounding.flush_to_zero));
    put("p_id", json!(header.p_id));
    put("dmu_id", json!(header.dmu_id));
    put("p_count", json!(header.p_count));
    put("run", json!(header.run));
    put("flags", json!(header.flags.names().collect::<Vec<_>>()));
    match &packet.body {
        Body::Words(words) => put("words", json!(words.iter().map(|word| format!("{word:016x}")).collect::<Vec<_>>())),
        Body::Configuration(records) => {
            let record = |record: &ConfigRecord| {
                json!({
                    "device": record.device,
                    "timeout": record.timeout,
                    "retries": record.retries,
                    "switches": format!("{:x}", record.switches),
                    "entries": record.entries,
                })
            };
            put("records", records.iter().map(record).collect());
        }
        Body::Initialisation(records) => {
            let record = |record: &InitRecord| {
                json!({
                    "device": record.device,
                    "p_count": record.p_count,
                    "words": record.words,
                    "below": record.below,
                    "pbv": format!("{:x}", record.pbv),
                    "master": record.master,
                    "to_source": record.to_source,
                    "above": record.above,
                    "collector": record.collector,
                    "down": format!("{:x}", record.down),
                    "groups": record.groups.map(|groups| json!({ "first": groups.first, "count": groups.count })),
                })
            };
            put("records", records.iter().map(record).collect());
        }
        Body::Missing { pbv, devices } => {
            put("pbv", json!(format!("{pbv:x}")));
            put("missing", json!(devices));
        }
    }
    serde_json::to_string_pretty(&Json::Object(object)).unwrap_or_default()
}
