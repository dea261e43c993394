//! `watershed frame`: reduction frames of the armed family, taken apart and put together.

use std::fmt::Write;

use clap::{Args, Subcommand};
use serde_json::json;

use super::{Exit, print, print_error};
use watershed_arith::ResultCode;
use watershed_arith::quad::Opcode;
use watershed_armed_interface::frame::{COMMAND, ETHERNET_BYTES, FRAME_BYTES, Frame, Portals};
use watershed_armed_interface::header::{Address, Header, NO_RESULT};
use watershed_reader::armed::config::opcode;
use watershed_reader::armed::file::op_name;

/// Take a reduction frame apart, or put one together.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  watershed frame encode --op int-sum --lanes 1,2,3,4 --seqno 17 --cookie 0xc0ffee
  watershed frame encode --op barrier --arm | watershed frame decode -

Exit status:
  0  the frame is sound
  2  the command line is wrong, or the bytes are no reduction frame")]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Decode(Decode),
    Encode(Box<Encode>),
}

/// Show the fields of a frame given in hexadecimal.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  watershed frame encode --op int-sum --lanes 1,2,3,4 | watershed frame decode -")]
struct Decode {
    /// The bytes in hexadecimal, blanks between them allowed; 84, or 98 behind an Ethernet header; "-" reads the standard input
    #[arg(value_name = "HEX", num_args = 1.., required = true)]
    hex: Vec<String>,
    /// Print the fields as JSON
    #[arg(long)]
    json: bool,
}

/// Print a frame with these fields in hexadecimal.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  watershed frame encode --op int-sum --lanes 1,2,3,4 --seqno 17 --cookie 0xc0ffee --table")]
struct Encode {
    /// Operation, for example int-sum or flt-repsum
    #[arg(long, value_name = "OP", default_value = "barrier", value_parser = operation)]
    op: u8,
    /// The four lanes, numbers or hexadecimal bit patterns with 0x
    #[arg(long, value_name = "A,B,C,D", value_delimiter = ',', value_parser = number, num_args = 1)]
    lanes: Vec<u64>,
    /// Sequence number
    #[arg(long, value_name = "N", default_value_t = 0)]
    seqno: u16,
    /// Sequence number of the result; 1023 is none
    #[arg(long, value_name = "N", default_value_t = NO_RESULT)]
    resno: u16,
    /// Contributions in the frame
    #[arg(long, value_name = "N", default_value_t = 1)]
    count: u32,
    /// Arms engines
    #[arg(long)]
    arm: bool,
    /// Sets software's retry flag
    #[arg(long)]
    retry: bool,
    /// Result code by number
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = result_code)]
    rc: u8,
    /// Exponent index of a reproducible sum
    #[arg(long, value_name = "M", default_value_t = 0, allow_negative_numbers = true)]
    repsum_m: i8,
    /// The word of a reproducible sum that wrapped
    #[arg(long, value_name = "N", default_value_t = 0)]
    oflow_id: u8,
    /// Cookie
    #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
    cookie: u64,
    /// Multicast id
    #[arg(long, value_name = "N", default_value_t = 0)]
    multicast_id: u16,
    /// Reduction id
    #[arg(long, value_name = "N", default_value_t = 0)]
    reduction_id: u8,
    /// Source fabric address
    #[arg(long, value_name = "N", default_value_t = 0)]
    source: u32,
    /// Protection key
    #[arg(long, value_name = "N", default_value_t = 1)]
    vni: u16,
    /// Rank of the sender
    #[arg(long, value_name = "N", default_value_t = 0)]
    rank: u32,
    /// Put it behind an Ethernet header
    #[arg(long)]
    ethernet: bool,
    /// Print the fields as well
    #[arg(long)]
    table: bool,
}

fn operation(text: &str) -> Result<u8, String> {
    let names = || watershed_arith::quad::OPCODES.iter().map(|opcode| op_name(opcode.name));
    opcode(text).map(|opcode| opcode.number).ok_or_else(|| {
        let known: Vec<String> = names().collect();
        let near = watershed_reader::names::nearest(text, known.iter().map(String::as_str));
        match near {
            Some(near) => format!("there is no operation \"{text}\"; did you mean {near}?"),
            None => format!("there is no operation \"{text}\"; there are {}", known.join(", ")),
        }
    })
}

pub(super) fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse::<u64>().ok().or_else(|| text.parse::<i64>().ok().map(|number| number as u64)),
    };
    parsed.ok_or_else(|| format!("\"{text}\" is no 64-bit number"))
}

fn result_code(text: &str) -> Result<u8, String> {
    let number: u8 = text.parse().map_err(|_| format!("\"{text}\" is no result code"))?;
    ResultCode::from_number(number).map(ResultCode::number).ok_or_else(|| {
        let known: Vec<String> = ResultCode::ALL.iter().map(|code| format!("{} {code}", code.number())).collect();
        format!("{number} is not assigned; there are {}", known.join(", "))
    })
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

/// Bytes of hexadecimal digits, with blanks and colons between them; "-" is the standard input.
pub(super) fn bytes_of(hex: &[String]) -> Result<Vec<u8>, String> {
    let mut text = hex.concat();
    if text == "-" {
        text.clear();
        std::io::Read::read_to_string(&mut std::io::stdin().lock(), &mut text)
            .map_err(|error| format!("cannot read the standard input: {error}"))?;
    }
    let digits: String =
        text.trim().trim_start_matches("0x").chars().filter(|c| !c.is_whitespace() && *c != ':').collect();
    if let Some((at, wrong)) = digits.char_indices().find(|(_, c)| !c.is_ascii_hexdigit()) {
        return Err(format!("'{}' at digit {at} is not hexadecimal", wrong.escape_debug()));
    }
    if digits.len() % 2 == 1 {
        return Err(format!("{} digits: a byte has two", digits.len()));
    }
    Ok(digits
        .as_bytes()
        .chunks(2)
        .map(|pair| {
            let digit = |c: u8| (c as char).to_digit(16).unwrap_or(0) as u8;
            digit(pair[0]) << 4 | digit(pair[1])
        })
        .collect())
}

fn decode(arguments: &Decode) -> Result<String, String> {
    let bytes = bytes_of(&arguments.hex)?;
    let ethernet = bytes.len() == ETHERNET_BYTES;
    let frame = if ethernet { Frame::decode_ethernet(&bytes) } else { Frame::decode(&bytes) };
    let frame = frame.map_err(|error| error.to_string())?;
    Ok(if arguments.json { json_of(&frame, ethernet) } else { table(&frame, ethernet) })
}

fn encode(arguments: &Encode) -> Result<String, String> {
    let mut lanes = [0; 4];
    if arguments.lanes.len() > 4 {
        return Err(format!("{} lanes; a frame has four", arguments.lanes.len()));
    }
    lanes[..arguments.lanes.len()].copy_from_slice(&arguments.lanes);
    let cookie =
        u32::try_from(arguments.cookie).map_err(|_| format!("cookie {} does not fit 32 bits", arguments.cookie))?;
    let frame = Frame {
        address: Address::new(arguments.multicast_id, arguments.reduction_id).map_err(|error| error.to_string())?,
        source: arguments.source,
        vni: arguments.vni,
        portals: Portals::default(),
        rank: arguments.rank,
        header: Header {
            seqno: arguments.seqno,
            arm: arguments.arm,
            op: arguments.op,
            count: arguments.count,
            resno: arguments.resno,
            code: ResultCode::from_number(arguments.rc).unwrap_or_default(),
            m: arguments.repsum_m,
            oflow_id: arguments.oflow_id,
            retry: arguments.retry,
            cookie,
        },
        lanes,
    };
    let error = |error: watershed_armed_interface::header::HeaderError| error.to_string();
    let bytes = if arguments.ethernet {
        frame.encode_ethernet().map_err(error)?.to_vec()
    } else {
        frame.encode().map_err(error)?.to_vec()
    };
    let mut text = String::with_capacity(2 * bytes.len() + 1);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\n');
    if arguments.table {
        text.push_str(&table(&frame, arguments.ethernet));
    }
    Ok(text)
}

fn name(op: u8) -> String {
    Opcode::from_number(op).map_or_else(|| "?".into(), |opcode| opcode.name.into())
}

/// A field: place, name, value, meaning.
type Row = (&'static str, &'static str, String, String);

fn rows(frame: &Frame) -> Vec<Row> {
    let Frame { address, source, vni, portals, rank, header, lanes } = frame;
    let mut rows: Vec<Row> = vec![
        (
            "0-3",
            "destination",
            format!("{:#010x}", address.encode()),
            format!("multicast {}, reduction {}", address.multicast_id, address.reduction_id),
        ),
        ("4-7", "source", source.to_string(), String::new()),
        ("8-9", "vni", format!("{vni:#06x}"), "protection key".into()),
        ("10-11", "length", FRAME_BYTES.to_string(), "bytes".into()),
        ("20", "command", format!("{COMMAND:#04x}"), "Portals: reduction".into()),
        ("21-22", "target", portals.target.to_string(), String::new()),
        ("23-26", "request", portals.request.to_string(), String::new()),
        ("27-28", "initiator", portals.initiator.to_string(), String::new()),
        ("32-35", "rank", rank.to_string(), String::new()),
        ("h95:64", "cookie", format!("{:#010x}", header.cookie), String::new()),
        ("h61", "retry", u8::from(header.retry).to_string(), String::new()),
        ("h60:59", "repsum_oflow_id", header.oflow_id.to_string(), String::new()),
        ("h58:51", "repsum_m", header.m.to_string(), String::new()),
        ("h50:47", "rc", header.code.number().to_string(), header.code.name().into()),
        (
            "h46:37",
            "resno",
            header.resno.to_string(),
            if header.resno == NO_RESULT { "no result".into() } else { String::new() },
        ),
        ("h36:17", "count", header.count.to_string(), String::new()),
        ("h16:11", "op", format!("{:#04x}", header.op), name(header.op)),
        ("h10", "arm", u8::from(header.arm).to_string(), String::new()),
        ("h9:0", "seqno", header.seqno.to_string(), String::new()),
    ];
    for (lane, at) in lanes.iter().zip(["48-55", "56-63", "64-71", "72-79"]) {
        let opcode = Opcode::from_number(header.op);
        let meaning = match opcode {
            Some(opcode) if opcode.dtype.is_float() && opcode.number != 0x30 => format!("{:?}", f64::from_bits(*lane)),
            _ => (*lane as i64).to_string(),
        };
        rows.push((at, "lane", format!("{lane:#018x}"), meaning));
    }
    rows
}

fn table(frame: &Frame, ethernet: bool) -> String {
    let mut out = String::new();
    if ethernet {
        let _ = writeln!(out, "{:8} {:16} {:20} behind an Ethernet header of 14 bytes", "", "form", "ethernet");
    }
    for (place, name, value, meaning) in rows(frame) {
        let _ = writeln!(out, "{}", format!("{place:8} {name:16} {value:20} {meaning}").trim_end());
    }
    out
}

fn json_of(frame: &Frame, ethernet: bool) -> String {
    let Frame { address, source, vni, portals, rank, header, lanes } = frame;
    let value = json!({
        "ethernet": ethernet,
        "multicast_id": address.multicast_id,
        "reduction_id": address.reduction_id,
        "source": source,
        "vni": vni,
        "portals": { "target": portals.target, "request": portals.request, "initiator": portals.initiator },
        "rank": rank,
        "cookie": header.cookie,
        "retry": header.retry,
        "repsum_oflow_id": header.oflow_id,
        "repsum_m": header.m,
        "rc": header.code.number(),
        "rc_name": header.code.name(),
        "resno": header.resno,
        "count": header.count,
        "op": header.op,
        "op_name": name(header.op),
        "arm": header.arm,
        "seqno": header.seqno,
        "lanes": lanes.map(|lane| format!("{lane:016x}")),
    });
    serde_json::to_string_pretty(&value).unwrap_or_default()
}
