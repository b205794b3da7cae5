//! Each page in a browser: content, KILL, no complaints of the browser, nothing outside of the window or over
//! something else; and texts of statements that would like to be markup.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::browser::Browser;
use crate::support::{Cohort, free_port, wait_until};

/// Returns the faults of the layout: elements with a text that leave the window, or lie over another one.
/// Text that a scrolling or clipping parent hides does not count.
const FAULTS: &str = r#"(() => {
  const faults = [], shown = [], name = it => it.tagName + " '" + it.textContent.trim().slice(0, 40) + "'";
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].filter(node => node.nodeType === 3 && node.data.trim());
    if (!own.length || element.closest("noscript, [hidden], .hidden, .skip")) continue;
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    for (const node of own) {
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const rect of range.getClientRects()) {
        let [left, right, top, bottom] = [rect.left, rect.right, rect.top, rect.bottom];
        for (let parent = element; parent && parent !== document.documentElement; parent = parent.parentElement) {
          const style = getComputedStyle(parent);
          if (style.overflowX === "visible" || parent === document.body) continue;
          const box = parent.getBoundingClientRect();
          [left, right, top, bottom] = [Math.max(left, box.left), Math.min(right, box.right), Math.max(top, box.top), Math.min(bottom, box.bottom)];
        }
        if (right - left < 2 || bottom - top < 2) continue;
        if (left < -1 || right > innerWidth + 1) faults.push("outside: " + name(element));
        shown.push({ element, left, right, top, bottom });
      }
    }
  }
  if (document.documentElement.scrollWidth > innerWidth) faults.push("the page is " + document.documentElement.scrollWidth + " wide");
  for (let a = 0; a < shown.length; a++) for (let b = a + 1; b < shown.length; b++) {
    const [x, y] = [shown[a], shown[b]];
    if (x.element.contains(y.element) || y.element.contains(x.element)) continue;
    const width = Math.min(x.right, y.right) - Math.max(x.left, y.left), height = Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top);
    if (width > 2 && height > 4) faults.push("over each other: " + name(x.element) + " and " + name(y.element));
  }
  return faults.slice(0, 10);
})()"#;

/// Pages, and a text that each must show after its figures have arrived.
const PAGES: [(&str, &str); 9] = [
    ("overview", "commits are durable"),
    ("statements", "Top statements"),
    ("sessions", "waits for"),
    ("locks", "rolled back"),
    ("commit", "Time from COMMIT to OK, by stage"),
    ("replication", "gtid_binlog_pos"),
    ("storage", "shop.orders"),
    ("settings", "metrics_port"),
    ("errors", "ready for connections"),
];

fn background(server: &Cohort, sql: &'static str) -> JoinHandle<Result<(), mysql::Error>> {
    let mut client: Conn = server.client();
    std::thread::spawn(move || sql.split(";;").try_for_each(|statement| client.query_drop(statement)))
}

/// Two transactions that lock two rows in opposite order.
fn deadlock(server: &Cohort) {
    let (mut one, mut other) = (server.client(), server.client());
    for client in [&mut one, &mut other] {
        client.query_drop("USE shop; ").expect("used");
        client.query_drop("BEGIN").expect("begun");
    }
    one.query_drop("UPDATE orders SET v = 1 WHERE id = 1").expect("changed");
    other.query_drop("UPDATE orders SET v = 1 WHERE id = 2").expect("changed");
    let waiting = std::thread::spawn(move || one.query_drop("UPDATE orders SET v = 2 WHERE id = 2"));
    let mut observer = server.client();
    wait_until("one transaction waits", || {
        let waits: Option<u64> =
            observer.query_first("SELECT COUNT(*) FROM information_schema.INNODB_LOCK_WAITS").expect("asked");
        waits == Some(1)
    });
    let second = other.query_drop("UPDATE orders SET v = 2 WHERE id = 1").is_err();
    let first = waiting.join().expect("ended").is_err();
    assert!(first != second, "one of them is rolled back");
}

const HOSTILE: &[&[u8]] = &[
    b"SELECT '<script>window.hacked=1</script>' AS `<img src=x onerror=window.hacked=1>`",
    b"SELECT 1 AS `</td></table><svg onload=window.hacked=1>`",
    b"SELECT /*<script>window.hacked=1</script>*/ 'javascript:window.hacked=1' AS `\" onmouseover=\"window.hacked=1`",
    b"SELECT '\x01\x02\x07\x1b[31m\x7f\xe2\x80\xae\xe2\x80\x8b' AS `\xe2\x80\xaeesrever`",
    b"SELECT '\xff\xfe\xc3\x28' AS invalid",
    b"SELECT '${window.hacked=1}{{constructor.constructor(\"window.hacked=1\")()}}' AS template",
];

#[test]
fn every_page_shows_its_content_at_every_width() {
    let port = free_port();
    let metrics = format!("--metrics-port={port}");
    let server = Cohort::new(&[&metrics, "--log-bin", "--max-allowed-packet=64M", "--userstat=ON"]);
    server.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, v INT, t VARCHAR(100), KEY (v));
         INSERT INTO shop.orders VALUES (1, 0, 'a'), (2, 0, 'b'), (3, 0, 'c'); CREATE USER guest@localhost IDENTIFIED BY 'g';
         GRANT PROCESS ON *.* TO guest@localhost; SET PASSWORD FOR root@localhost = PASSWORD('');
         SELECT COUNT(*) FROM shop.orders; UPDATE shop.orders SET v = v + 1",
    );
    deadlock(&server);
    // The client program sends bytes as they are. Errors of theirs do not matter; that they are counted does.
    let address = ["--no-defaults", "--host=127.0.0.1", "--user=root", "--force"];
    let mut program = Command::new("mariadb")
        .args(address)
        .arg(format!("--port={}", server.port))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("mariadb starts");
    let mut input = program.stdin.take().expect("piped");
    for text in HOSTILE {
        input.write_all(text).and_then(|()| input.write_all(b";\n")).expect("sent");
    }
    drop(input);
    program.wait().expect("ended");
    let mut client = server.client();
    let long = format!("SELECT '{}' AS long_text", "<b>x</b>".repeat(2 << 20));
    client.query_drop(&long).expect("16 MiB");
    // One session waits for a row of another one, and a third for a name.
    let _blocker = background(
        &server,
        "BEGIN;;UPDATE shop.orders SET v = 9 WHERE id = 3;;SELECT SLEEP(600) AS `<script>window.hacked=1</script>`",
    );
    wait_until("the blocker sleeps", || server.sql("SHOW PROCESSLIST").contains("SLEEP(600)"));
    let _waiting =
        background(&server, "SET innodb_lock_wait_timeout = 600;;UPDATE shop.orders SET v = 8 WHERE id = 3");
    let _ddl = background(&server, "SET lock_wait_timeout = 600;;ALTER TABLE shop.orders ADD COLUMN w INT");
    wait_until("the others wait", || server.sql("SHOW PROCESSLIST").matches("Waiting for").count() >= 2);

    let mut browser = Browser::start();
    browser.size(1440, false);
    browser.open(&format!("https://127.0.0.1:{port}/"));
    // A page that needs a login asks for one, and a wrong password is an error.
    browser.value("location.hash = '#sessions'");
    browser.wait("document.querySelector('form.login')");
    let log_in = |browser: &mut Browser, user: &str, password: &str| {
        browser.value(&format!(
            "(() => {{ const form = document.querySelector('form.login'); form.elements.user.value = '{user}'; \
             form.elements.password.value = '{password}'; form.requestSubmit(); }})()"
        ));
    };
    log_in(&mut browser, "guest", "wrong");
    browser.wait("document.querySelector('[role=alert]').innerText.includes('Access denied')");
    browser.complaints.retain(|text| !text.contains("status of 403"));
    assert_eq!(browser.complaints, Vec::<String>::new());

    // An account without CONNECTION ADMIN may look, and not kill.
    log_in(&mut browser, "guest", "g");
    browser.wait(
        "document.body.innerText.includes('guest@localhost') && document.querySelector('button.danger')",
    );
    browser.value("window.confirm = () => true");
    let kill = "[...document.querySelectorAll('tr')].find(row => row.innerText.includes('SLEEP(600)')).querySelector('button.danger').click()";
    browser.value(kill);
    browser.wait("document.body.innerText.includes('was not killed: You are not owner')");
    browser.complaints.retain(|text| !text.contains("status of 403"));
    browser
        .value("[...document.querySelectorAll('button')].find(one => one.innerText === 'Log out').click()");
    browser.wait("document.querySelector('form.login')");
    log_in(&mut browser, "root", "");
    browser.wait("document.body.innerText.includes('root@localhost')");

    for (width, is_dark) in [(1440, false), (768, true), (360, false)] {
        browser.size(width, is_dark);
        for (page, text) in PAGES {
            browser.value(&format!("location.hash = '#{page}'"));
            browser.wait(&format!("document.querySelector('#content').innerText.includes({text:?})"));
            if page == "statements" {
                browser.value("[...document.querySelectorAll('button')].find(one => one.innerText === 'since the start').click()");
                browser.wait("document.querySelector('#content').innerText.includes('ORDERS')||document.querySelector('#content').innerText.includes('orders')");
                browser.value("[...document.querySelectorAll('tbody button.link')].find(one => one.innerText.includes('orders')).click()");
                browser.wait("document.querySelector('.detail pre')");
                browser.wait("document.querySelector('#content').innerText.includes('Sample')");
            }
            browser.wait(
                "document.querySelectorAll('.plot').length === document.querySelectorAll('.plot svg').length",
            );
            let faults = browser.value(FAULTS);
            assert_eq!(faults, serde_json::json!([]), "{page} at {width}");
            assert_eq!(browser.complaints, Vec::<String>::new(), "{page} at {width}");
            assert_eq!(browser.value("window.hacked === undefined"), true, "{page} at {width}");
        }
        // The menu, and a chart as a table, with the keyboard's means.
        browser.value("location.hash = '#overview'");
        browser.wait("document.querySelector('.chart button')");
        browser.value("document.querySelector('.chart button').click()");
        browser.wait("document.querySelector('.chart-table:not([hidden]) tbody tr')");
        browser.value("document.querySelector('.chart button').click()");
        browser.wait("document.querySelector('.chart .plot:not([hidden]) svg')");
        if width < 900 {
            browser.value("document.querySelector('.menu').click()");
            browser.wait("document.querySelector('#nav').checkVisibility()");
            assert_eq!(browser.value(FAULTS), serde_json::json!([]), "menu at {width}");
            browser.value("document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))");
            browser.wait("!document.querySelector('#nav').checkVisibility()");
        }
    }
    // Hostile texts are there, as texts.
    browser.size(1440, false);
    browser.value("location.hash = '#statements'");
    browser.wait("document.querySelector('.ranges button')");
    browser.value(
        "[...document.querySelectorAll('button')].find(one => one.innerText === 'since the start').click()",
    );
    browser
        .wait("document.querySelector('#content').innerText.includes('<img src=x onerror=window.hacked=1>')");
    assert_eq!(browser.value("document.querySelectorAll('#content script, #content img').length"), 0);

    // KILL by an account that may.
    browser.value("location.hash = '#sessions'");
    browser.value("window.confirm = () => true");
    browser.wait("[...document.querySelectorAll('tr')].some(row => row.innerText.includes('SLEEP(600)'))");
    browser.value(kill);
    browser.wait("document.body.innerText.includes('was killed.')");
    wait_until("the statement ends", || !server.sql("SHOW PROCESSLIST").contains("SLEEP(600)"));
    assert_eq!(browser.complaints, Vec::<String>::new());
    assert_eq!(browser.value("window.hacked === undefined"), true);
}
