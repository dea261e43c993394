//! Drives a headless browser as the WebDriver standard says: JSON over HTTP to `chromedriver`. Where that is not installed, tests
//! say so and pass.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A browser under remote control.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// Kept open: it writes on.
    _told: BufReader<ChildStdout>,
}

/// The key under which the standard hands elements on.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

impl Browser {
    /// Starts one; `None`, with a line that says so, if there is none.
    pub fn start() -> Option<Self> {
        let started = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut driver) = started else {
            println!("skipped: chromedriver is not installed (apt-get install chromium chromium-driver)");
            return None;
        };
        // "ChromeDriver was started successfully on port 41234."
        let mut told = BufReader::new(driver.stdout.take().unwrap());
        let port = std::iter::from_fn(|| {
            let mut line = String::new();
            told.read_line(&mut line).ok().filter(|count| *count > 0).map(|_| line)
        })
        .find_map(|line| line.split("successfully on port ").nth(1)?.trim().trim_end_matches('.').parse().ok());
        let port = port.expect("chromedriver says its port");
        let mut browser = Self { driver, port, session: String::new(), _told: told };
        let options = json!({ "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,1000"] });
        let wanted =
            json!({ "capabilities": { "alwaysMatch": { "browserName": "chrome", "goog:chromeOptions": options } } });
        let found = browser.ask("POST", "/session", &wanted);
        found["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {found}")).clone_into(&mut browser.session);
        Some(browser)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("chromedriver listens");
        let body = if method == "POST" { body.to_string() } else { String::new() };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if line.trim().is_empty() {
                break;
            }
            if let Some((_, value)) =
                line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            {
                length = value.trim().parse().unwrap();
            }
        }
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes).unwrap();
        let answer: Value = serde_json::from_slice(&bytes).unwrap();
        let value = answer["value"].clone();
        assert!(value.get("error").is_none(), "{method} {path}: {value}");
        value
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", &format!("/session/{}/{path}", self.session), body)
    }

    /// Opens a file.
    pub fn open(&self, page: &Path) {
        self.post("url", &json!({ "url": format!("file://{}", page.display()) }));
    }

    fn element(&self, selector: &str) -> String {
        let found = self.post("element", &json!({ "using": "css selector", "value": selector }));
        found[ELEMENT].as_str().unwrap_or_else(|| panic!("{selector}: {found}")).to_owned()
    }

    /// Clicks on an element.
    pub fn click(&self, selector: &str) {
        self.post(&format!("element/{}/click", self.element(selector)), &json!({}));
    }

    /// Types into an element what replaces what it holds.
    pub fn write(&self, selector: &str, text: &str) {
        let element = self.element(selector);
        self.post(&format!("element/{element}/clear"), &json!({}));
        self.post(&format!("element/{element}/value"), &json!({ "text": text }));
    }

    /// What a piece of script returns.
    pub fn script(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// The text of an element.
    pub fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector({selector:?}).textContent");
        let found = || self.script(&script).as_str().unwrap_or_default().to_owned();
        // On a busy machine a page may not have written it yet.
        let begun = Instant::now();
        while found().is_empty() && begun.elapsed() < Duration::from_secs(3) {
            std::thread::sleep(Duration::from_millis(50));
        }
        found()
    }

    /// Chooses a value of a list.
    pub fn choose(&self, selector: &str, value: &str) {
        self.click(&format!("{selector} option[value={value:?}]"));
    }

    /// Drags the pointer from one place of the window to another one; a click if they are the same.
    pub fn drag(&self, from: (f64, f64), to: (f64, f64)) {
        let go = |(x, y): (f64, f64)| json!({ "type": "pointerMove", "duration": 30, "x": x.round() as i64, "y": y.round() as i64 });
        let middle = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
        let press = |what: &str| json!({ "type": what, "button": 0 });
        let mut actions = vec![go(from), press("pointerDown")];
        if from != to {
            actions.extend([go(middle), go(to)]);
        }
        actions.push(press("pointerUp"));
        let pointer =
            json!({ "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" }, "actions": actions });
        self.post("actions", &json!({ "actions": [pointer] }));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.ask("DELETE", &format!("/session/{}", self.session), &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
