//! Chromium without a window, driven by the DevTools protocol over a pipe.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Reads commands from descriptor 3 and answers on 4, which are the standard input and output here.
const COMMAND: &str = "exec chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-extensions \
    --no-first-run --hide-scrollbars --ignore-certificate-errors --user-data-dir=\"$0\" --remote-debugging-pipe \
    about:blank 3<&0 4>&1 1>/dev/null 2>/dev/null";

pub struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: Option<String>,
    last_id: u64,
    /// Messages of the console, exceptions and failed requests.
    pub complaints: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    pub fn start() -> Browser {
        let profile = tempfile::tempdir().expect("a folder");
        let mut child = Command::new("sh")
            .args(["-c", COMMAND])
            .arg(profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut own = Browser {
            child,
            input,
            output,
            session: None,
            last_id: 0,
            complaints: Vec::new(),
            _profile: profile,
        };
        let target = own.command("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = own.command("Target.attachToTarget", attach);
        own.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            own.command(&format!("{domain}.enable"), json!({}));
        }
        own
    }

    /// Runs a command, and returns its result.
    pub fn command(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.input.write_all(format!("{message}\0").as_bytes()).expect("the browser reads");
        loop {
            let mut bytes = Vec::new();
            self.output.read_until(0, &mut bytes).expect("the browser answers");
            assert!(!bytes.is_empty(), "the browser has ended; ./x test installs chromium");
            bytes.pop();
            let answer: Value = serde_json::from_slice(&bytes).expect("JSON");
            if answer["id"] == self.last_id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let text = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => event["params"]["exceptionDetails"].to_string(),
            Some("Log.entryAdded") if event["params"]["entry"]["level"] == "error" => {
                event["params"]["entry"].to_string()
            }
            Some("Runtime.consoleAPICalled") => event["params"]["args"].to_string(),
            _ => return,
        };
        self.complaints.push(text);
    }

    /// Returns the value of an expression, or of the promise that it is.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.command("Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    pub fn open(&mut self, url: &str) {
        self.command("Page.navigate", json!({ "url": url }));
        self.wait("document.readyState === 'complete' && document.querySelector('h1') !== null");
    }

    pub fn size(&mut self, width: u32, is_dark: bool) {
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.command("Emulation.setDeviceMetricsOverride", size);
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.command("Emulation.setEmulatedMedia", media);
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, expression: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        while self.value(&format!("Boolean({expression})")) != true {
            if Instant::now() > end {
                let page = self.value("document.body ? document.body.innerText.slice(0, 2000) : ''");
                panic!("never true: {expression}\n{page}\n{:?}", self.complaints);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its own processes end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
