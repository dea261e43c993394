//! Small expressions over named values: filters, metrics and objectives of sweeps, triggers of waves.
//!
//! | kind | forms |
//! |---|---|
//! | value | `12`, `0.5`, `0x1f`, `'word'`, `true`, `false`, a name such as `switch.ceng.stages` or `collectives.0.latency_cycles` |
//! | arithmetic | `+ - * / % ^` (power), unary `-` |
//! | comparison | `== != < <= > >=` |
//! | logic | `and or not`, also `&& \|\| !` |
//! | function | `min max abs ceil floor round sqrt log2 log10` |
//!
//! A name that has no value makes the expression have none; so does a division by zero. Comparison binds weaker than
//! arithmetic, `not` weaker than comparison, `and` weaker than `not`, `or` weakest.

use std::fmt;
use std::ops::Range;

use super::units;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
    /// Yes or no.
    Truth(bool),
}

impl Value {
    /// The number, or 1 and 0 for yes and no.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Truth(truth) => Some(f64::from(u8::from(*truth))),
            Self::Word(_) => None,
        }
    }

    /// Whether it holds: a number does unless it is 0.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Number(number) => *number != 0.0,
            Self::Truth(truth) => *truth,
            Self::Word(word) => !word.is_empty(),
        }
    }

    /// The value of a piece of JSON; arrays and tables have none.
    pub fn of_json(json: &serde_json::Value) -> Option<Self> {
        match json {
            serde_json::Value::Bool(truth) => Some(Self::Truth(*truth)),
            serde_json::Value::Number(number) => number.as_f64().map(Self::Number),
            serde_json::Value::String(word) => Some(Self::Word(word.clone())),
            _ => None,
        }
    }
}

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    text: String,
    node: Node,
}

/// What is wrong with the text of an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExprError {
    /// What.
    pub message: String,
    /// Where, in bytes.
    pub at: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Value(Value),
    Name(String),
    Unary(&'static str, Box<Node>),
    Binary(&'static str, Box<Node>, Box<Node>),
    Call(&'static str, Vec<Node>),
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Functions and the numbers of operands they take at least and at most.
const FUNCTIONS: [(&str, usize, usize); 9] = [
    ("min", 1, 64),
    ("max", 1, 64),
    ("abs", 1, 1),
    ("ceil", 1, 1),
    ("floor", 1, 1),
    ("round", 1, 1),
    ("sqrt", 1, 1),
    ("log2", 1, 1),
    ("log10", 1, 1),
];

/// Operators, weakest first; of each level left to right.
const LEVELS: [&[&str]; 5] =
    [&["or", "||"], &["and", "&&"], &["==", "!=", "<=", ">=", "<", ">"], &["+", "-"], &["*", "/", "%"]];

/// Nested brackets, at most.
const DEPTH: usize = 64;

impl Expr {
    /// Reads an expression.
    ///
    /// # Errors
    /// The first place that is not understood.
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        let mut parser = Parser { tokens: tokens(text)?, at: 0, end: text.len(), depth: 0 };
        let node = parser.level(0)?;
        match parser.tokens.get(parser.at) {
            None => Ok(Self { text: text.to_owned(), node }),
            Some((token, range)) => {
                let unit = matches!(token, Token::Name(name) if units::is_unit(name));
                let before = parser.at.checked_sub(1).map(|before| &parser.tokens[before].0);
                let message = if unit && matches!(before, Some(Token::Number(_))) {
                    "numbers have no units here: the end of a name says its unit, latency_ns is in ns"
                } else if matches!(token, Token::Sign("=")) {
                    "`==` compares; a single `=` means nothing here"
                } else {
                    "the expression should end here"
                };
                Err(ExprError { message: message.into(), at: range.clone() })
            }
        }
    }

    /// As [`parse`](Self::parse), for a command line.
    ///
    /// # Errors
    /// The place that is not understood in words, and what is wrong there.
    pub fn parse_argument(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|wrong| {
            let place = text.get(wrong.at.clone()).filter(|piece| !piece.is_empty()).unwrap_or("the end");
            format!("at `{place}`: {wrong}")
        })
    }

    /// The expression that is this name, whatever letters are in it.
    #[must_use]
    pub fn name(name: &str) -> Self {
        Self { text: name.to_owned(), node: Node::Name(name.to_owned()) }
    }

    /// Its value, with names looked up in `name`.
    pub fn eval(&self, name: &dyn Fn(&str) -> Option<Value>) -> Option<Value> {
        eval(&self.node, name)
    }

    /// All names in it.
    pub fn names(&self) -> Vec<&str> {
        fn visit<'a>(node: &'a Node, out: &mut Vec<&'a str>) {
            match node {
                Node::Value(_) => {}
                Node::Name(name) => out.push(name),
                Node::Unary(_, inner) => visit(inner, out),
                Node::Binary(_, a, b) => {
                    visit(a, out);
                    visit(b, out);
                }
                Node::Call(_, operands) => operands.iter().for_each(|operand| visit(operand, out)),
            }
        }
        let mut out = Vec::new();
        visit(&self.node, &mut out);
        out
    }
}

impl Expr {
    /// The same, with names for words where they are compared with what has such a value: `engine == pbv` means
    /// `engine == 'pbv'`. `is_word` is asked of the name on the other side and of the one that may be a word.
    #[must_use]
    pub fn with_words(&self, is_word: &dyn Fn(&str, &str) -> bool) -> Self {
        fn read(node: &Node, is_word: &dyn Fn(&str, &str) -> bool) -> Node {
            let inner = |node: &Node| Box::new(read(node, is_word));
            match node {
                Node::Value(_) | Node::Name(_) => node.clone(),
                Node::Unary(op, operand) => Node::Unary(op, inner(operand)),
                Node::Binary(op @ ("==" | "!="), a, b) => {
                    let word = |name: &Node, other: &Node| match (name, other) {
                        (Node::Name(name), Node::Name(other)) => is_word(other, name),
                        _ => false,
                    };
                    let side = |node: &Node, other: &Node| match node {
                        Node::Name(name) if word(node, other) => Box::new(Node::Value(Value::Word(name.clone()))),
                        _ => inner(node),
                    };
                    Node::Binary(op, side(a, b), side(b, a))
                }
                Node::Binary(op, a, b) => Node::Binary(op, inner(a), inner(b)),
                Node::Call(function, operands) => {
                    Node::Call(function, operands.iter().map(|node| read(node, is_word)).collect())
                }
            }
        }
        Self { text: self.text.clone(), node: read(&self.node, is_word) }
    }

    /// What is compared with `==` or `!=`, where both sides are a name or a word: the two, and whether each is a name.
    pub fn compared(&self) -> Vec<[(&str, bool); 2]> {
        fn side(node: &Node) -> Option<(&str, bool)> {
            match node {
                Node::Name(name) => Some((name, true)),
                Node::Value(Value::Word(word)) => Some((word, false)),
                _ => None,
            }
        }
        fn visit<'a>(node: &'a Node, out: &mut Vec<[(&'a str, bool); 2]>) {
            match node {
                Node::Value(_) | Node::Name(_) => {}
                Node::Unary(_, inner) => visit(inner, out),
                Node::Binary(op, a, b) => {
                    if let (true, Some(a), Some(b)) = (matches!(*op, "==" | "!="), side(a), side(b)) {
                        out.push([a, b]);
                    }
                    visit(a, out);
                    visit(b, out);
                }
                Node::Call(_, operands) => operands.iter().for_each(|operand| visit(operand, out)),
            }
        }
        let mut out = Vec::new();
        visit(&self.node, &mut out);
        out
    }
}

fn eval(node: &Node, name: &dyn Fn(&str) -> Option<Value>) -> Option<Value> {
    match node {
        Node::Value(value) => Some(value.clone()),
        Node::Name(word) => name(word),
        Node::Unary("-", inner) => Some(Value::Number(-eval(inner, name)?.number()?)),
        Node::Unary(_, inner) => Some(Value::Truth(!eval(inner, name)?.is_true())),
        Node::Binary("or", a, b) => match eval(a, name) {
            Some(a) if a.is_true() => Some(Value::Truth(true)),
            _ => Some(Value::Truth(eval(b, name)?.is_true())),
        },
        Node::Binary("and", a, b) => Some(Value::Truth(eval(a, name)?.is_true() && eval(b, name)?.is_true())),
        Node::Binary(op @ ("==" | "!="), a, b) => {
            let (a, b) = (eval(a, name)?, eval(b, name)?);
            let same = match (a.number(), b.number()) {
                (Some(a), Some(b)) => a.total_cmp(&b).is_eq() || (a == 0.0 && b == 0.0),
                _ => a == b,
            };
            Some(Value::Truth(same == (*op == "==")))
        }
        Node::Binary(op, a, b) => {
            let (a, b) = (eval(a, name)?.number()?, eval(b, name)?.number()?);
            let value = match *op {
                "<" => return Some(Value::Truth(a < b)),
                "<=" => return Some(Value::Truth(a <= b)),
                ">" => return Some(Value::Truth(a > b)),
                ">=" => return Some(Value::Truth(a >= b)),
                "+" => a + b,
                "-" => a - b,
                "*" => a * b,
                "/" => a / b,
                "%" => a % b,
                _ => a.powf(b),
            };
            value.is_finite().then_some(Value::Number(value))
        }
        Node::Call(function, operands) => {
            let values: Option<Vec<f64>> = operands.iter().map(|operand| eval(operand, name)?.number()).collect();
            let values = values?;
            let value = match *function {
                "min" => values.iter().copied().fold(f64::INFINITY, f64::min),
                "max" => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                "abs" => values[0].abs(),
                "ceil" => values[0].ceil(),
                "floor" => values[0].floor(),
                "round" => values[0].round(),
                "sqrt" => values[0].sqrt(),
                "log2" => values[0].log2(),
                _ => values[0].log10(),
            };
            value.is_finite().then_some(Value::Number(value))
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(f64),
    Word(String),
    Name(String),
    Sign(&'static str),
}

const SIGNS: [&str; 19] =
    ["&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "^", "!", "(", ")", ",", "="];

fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, ExprError> {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
        if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let wrong = |message: &str, end: usize| ExprError { message: message.to_owned(), at: start..end };
        let token = if byte.is_ascii_digit() {
            let hexadecimal = text[at..].starts_with("0x");
            let digit = |byte: u8| {
                byte == b'_'
                    || if hexadecimal { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() || byte == b'.' }
            };
            at += if hexadecimal { 2 } else { 0 };
            while at < bytes.len() && digit(bytes[at]) {
                at += 1;
            }
            if !hexadecimal && at < bytes.len() && matches!(bytes[at], b'e' | b'E') {
                at += 1;
                at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
                while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                    at += 1;
                }
            }
            let digits = text[start..at].replace('_', "");
            let number = match digits.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok().map(|number| number as f64),
                None => digits.parse().ok(),
            };
            Token::Number(number.ok_or_else(|| wrong("this is no number", at))?)
        } else if byte == b'\'' || byte == b'"' {
            let length =
                text[at + 1..].find(byte as char).ok_or_else(|| wrong("the word has no closing quote", text.len()))?;
            at += length + 2;
            Token::Word(text[start + 1..at - 1].to_owned())
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            while at < bytes.len()
                && (bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'_' | b'.' | b'[' | b']'))
            {
                at += 1;
            }
            Token::Name(text[start..at].replace('[', ".").replace(']', ""))
        } else {
            let sign = SIGNS.iter().find(|sign| text[at..].starts_with(**sign));
            let width = text[at..].chars().next().map_or(1, char::len_utf8);
            let sign = sign.ok_or_else(|| wrong("this sign means nothing here", at + width))?;
            at += sign.len();
            Token::Sign(sign)
        };
        out.push((token, start..at));
    }
    Ok(out)
}

struct Parser {
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
    end: usize,
    depth: usize,
}

impl Parser {
    fn error<T>(&self, message: impl Into<String>) -> Result<T, ExprError> {
        let at = self.tokens.get(self.at).map_or(self.end..self.end, |(_, range)| range.clone());
        Err(ExprError { message: message.into(), at })
    }

    /// The next token if it is one of these signs or words.
    fn take_token(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        let (token, _) = self.tokens.get(self.at)?;
        let found = signs.iter().find(|sign| match token {
            Token::Sign(found) => found == *sign,
            Token::Name(found) => found == *sign,
            _ => false,
        })?;
        self.at += 1;
        Some(found)
    }

    fn level(&mut self, level: usize) -> Result<Node, ExprError> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        if level == 2
            && let Some(_not) = self.take_token(&["not", "!"])
        {
            self.enter_nesting()?;
            let inner = self.level(2)?;
            self.depth -= 1;
            return Ok(Node::Unary("not", Box::new(inner)));
        }
        let mut left = self.level(level + 1)?;
        while let Some(operator) = self.take_token(operators) {
            let operator = match operator {
                "||" => "or",
                "&&" => "and",
                other => other,
            };
            let right = self.level(level + 1)?;
            left = Node::Binary(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Node, ExprError> {
        if self.take_token(&["-"]).is_some() {
            self.enter_nesting()?;
            let inner = self.unary()?;
            self.depth -= 1;
            return Ok(Node::Unary("-", Box::new(inner)));
        }
        let base = self.atom()?;
        if self.take_token(&["^"]).is_some() {
            self.enter_nesting()?;
            let power = self.unary()?;
            self.depth -= 1;
            return Ok(Node::Binary("^", Box::new(base), Box::new(power)));
        }
        Ok(base)
    }

    fn enter_nesting(&mut self) -> Result<(), ExprError> {
        self.depth += 1;
        if self.depth > DEPTH { self.error("this is nested too deeply") } else { Ok(()) }
    }

    fn atom(&mut self) -> Result<Node, ExprError> {
        let Some((token, _)) = self.tokens.get(self.at).cloned() else {
            return self.error("a value is missing here");
        };
        match token {
            Token::Number(number) => {
                self.at += 1;
                Ok(Node::Value(Value::Number(number)))
            }
            Token::Word(word) => {
                self.at += 1;
                Ok(Node::Value(Value::Word(word)))
            }
            Token::Name(name) => {
                let truth = match name.as_str() {
                    "true" => Some(true),
                    "false" => Some(false),
                    "and" | "or" | "not" => return self.error("a value is missing here"),
                    _ => None,
                };
                self.at += 1;
                if let Some(truth) = truth {
                    return Ok(Node::Value(Value::Truth(truth)));
                }
                if self.take_token(&["("]).is_none() {
                    return Ok(Node::Name(name));
                }
                self.call(&name)
            }
            Token::Sign("(") => {
                self.at += 1;
                self.enter_nesting()?;
                let inner = self.level(0)?;
                self.depth -= 1;
                if self.take_token(&[")"]).is_none() { self.error("a `)` is missing here") } else { Ok(inner) }
            }
            Token::Sign("=") => self.error("equality is written `==`"),
            Token::Sign(_) => self.error("a value is missing here"),
        }
    }

    fn call(&mut self, name: &str) -> Result<Node, ExprError> {
        let Some((function, least, most)) = FUNCTIONS.iter().find(|(function, ..)| *function == name) else {
            self.at -= 2;
            let names = super::names::one_of(FUNCTIONS.iter().map(|(function, ..)| function));
            return self.error(format!("there is no function `{name}`, but {names}"));
        };
        self.enter_nesting()?;
        let mut operands = Vec::new();
        if self.take_token(&[")"]).is_none() {
            loop {
                operands.push(self.level(0)?);
                if self.take_token(&[")"]).is_some() {
                    break;
                }
                if self.take_token(&[","]).is_none() {
                    return self.error("a `,` or `)` is missing here");
                }
            }
        }
        self.depth -= 1;
        if operands.len() < *least || operands.len() > *most {
            self.at -= 1;
            return self.error(format!("`{function}` takes another number of values"));
        }
        Ok(Node::Call(function, operands))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<Value> {
        let names = |name: &str| match name {
            "a.0.b" => Some(Value::Number(3.0)),
            "word" => Some(Value::Word("mesh".into())),
            _ => None,
        };
        Expr::parse(text).unwrap_or_else(|wrong| panic!("{text}: {wrong}")).eval(&names)
    }

    #[test]
    fn expressions_have_the_usual_values() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("2 ^ 3 ^ 2", 512.0),
            ("-2 ^ 2", -4.0),
            ("7 - 2 - 1", 4.0),
            ("a.0.b * 2", 6.0),
            ("a[0].b % 2", 1.0),
            ("max(1, a.0.b, 2) + min(4, 5)", 7.0),
            ("ceil(log2(10))", 4.0),
            ("0x1f + 1_000 + 1.5e1", 1046.0),
        ] {
            assert_eq!(value(text), Some(Value::Number(expected)), "{text}");
        }
        for (text, expected) in [
            ("a.0.b == 3 and word == 'mesh'", true),
            ("not a.0.b < 3 and true", true),
            ("1 < 2 or 1 / 0 > 2", true),
            ("1 > 2 || word != \"mesh\"", false),
            ("!(1 == 1)", false),
        ] {
            assert_eq!(value(text), Some(Value::Truth(expected)), "{text}");
        }
        assert_eq!(value("nothing + 1"), None);
        assert_eq!(value("1 / 0"), None);
        assert_eq!(Expr::parse("max(a, b.c) + a").unwrap().names(), ["a", "b.c", "a"]);
        let bare = Expr::parse("word == mesh and mesh != a.0.b or max(1, mesh) > 1").unwrap();
        let bare = bare.with_words(&|name, word| (name, word) == ("word", "mesh"));
        assert_eq!(bare.names(), ["word", "mesh", "a.0.b", "mesh"], "{bare}");
        let expr = Expr::parse("not a.s == IDLE and ('x y' != b or a < b or max(a, 1) == c)").unwrap();
        assert_eq!(expr.compared(), [[("a.s", true), ("IDLE", true)], [("x y", false), ("b", true)]]);
    }

    #[test]
    fn mistakes_have_their_place() {
        for (text, message, at) in [
            ("1 +", "a value is missing here", 3..3),
            ("1 = 2", "a single `=` means nothing here", 2..3),
            ("(1", "a `)` is missing here", 2..2),
            ("foo(1)", "there is no function `foo`", 0..3),
            ("sqrt(1, 2)", "another number of values", 9..10),
            ("1 § 2", "means nothing", 2..4),
            ("'x", "no closing quote", 0..2),
            ("1 2", "should end here", 2..3),
            ("a_ns<1us", "numbers have no units here", 6..8),
            ("a_ns<1 us", "numbers have no units here", 7..9),
        ] {
            let wrong = Expr::parse(text).unwrap_err();
            assert!(wrong.message.contains(message) && wrong.at == at, "{text}: {wrong:?}");
        }
        assert!(Expr::parse(&"(".repeat(100_000)).is_err());
        assert!(Expr::parse(&"-".repeat(100_000)).is_err());
    }
}
