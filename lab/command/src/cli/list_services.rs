// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell list-services`.

use std::io::Write;

use doorbell::service::{ClientSeen, Folder, FolderState, Found, Occupancy, inspect};
use serde_json::{Value, json};

use super::common::{Exit, Terminal};
use super::out::Out;
use doorbell_report::style::{Role, Style};
use doorbell_report::table::{Table, number, word};
use doorbell_report::unit::count;

/// Arguments of `doorbell list-services`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell list-services                  names, processes, clients, and what lies in their rings\n  \
    doorbell list-services --json | jq '.services[].clients[].requests.messages'\n\n\
    WHAT IS SEEN\n  \
    The services of this user's folders ($DOORBELL_RUNTIME_DIR, else /run/user/UID/doorbell, /tmp/doorbell-UID and\n  \
    ~/.local/state/doorbell/services/BOOT, as far as they are this user's alone), and those at other paths that have clients.\n  \
    Nothing is asked of them: the memory that a service shares with a client shows among the open files of both, and is\n  \
    read. Messages are those sent whose room was not given back yet; drops are as the sender says. Whom a service\n  \
    turned away, and why, it has counted.")]
pub struct Args {
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Lists services, their clients, occupancy and drops.
pub fn run(args: Args, _: &Terminal) -> anyhow::Result<Exit> {
    let found = inspect()?;
    let mut out = Out::new();
    if args.json {
        writeln!(out, "{}", doorbell_results::written::json(&as_json(&found))?)?;
    } else {
        out.write_all(text(&found, &Style::of_stdout()).as_bytes())?;
    }
    Ok(Exit::Done)
}

fn text(found: &Found, style: &Style) -> String {
    let mut text = if found.services.is_empty() {
        style.wrap("This user has no services now.", 0)
    } else {
        table(found).render(style)
    };
    let aside = |text: &str| style.paint(Role::Aside, &style.wrap(text, 0));
    let in_use: Vec<_> = found.folders.iter().filter(|folder| folder.is_used()).collect();
    if !in_use.is_empty() {
        let paths: Vec<_> = in_use.iter().map(|folder| folder.path.display().to_string()).collect();
        text.push_str(&aside(&format!("Names are sockets in {}.", paths.join(", "))));
    }
    for folder in &found.folders {
        if !folder.is_used() && folder.state != FolderState::Nothing {
            text.push_str(&aside(&format!("Passed by: {folder}.")));
        }
    }
    for served in found.services.iter().filter(|served| served.turned_away > 0) {
        let last = served.reasons.last().map(|reason| format!(", the last because {reason}"));
        let more = format!(
            "{} turned {} callers away{}.",
            served.name,
            count(u64::from(served.turned_away)),
            last.unwrap_or_default()
        );
        text.push_str(&style.wrap(&more, 0));
    }
    if let Some(limit) = found.async_io.filter(|limit| limit.is_short()) {
        text.push_str(&style.wrap(&format!("{limit}."), 0));
    }
    if found.closed > 0 {
        let more = format!(
            "{} processes may not be looked into: other users', or protected from tracing. Some \
             may be services or clients.",
            count(found.closed as u64)
        );
        text.push_str(&aside(&more));
    }
    text
}

fn table(found: &Found) -> Table {
    let mut table = Table::new(vec![
        word("service"),
        number("pid"),
        number("client"),
        number("requests"),
        number("full"),
        number("dropped"),
        number("answers"),
        number("full"),
        number("dropped"),
    ]);
    for served in &found.services {
        let process = served.process.map_or_else(|| "nobody".to_owned(), |process| process.to_string());
        if served.clients.is_empty() {
            let mut row = vec![served.name.clone(), process];
            row.resize(9, "-".to_owned());
            table.row(row);
            continue;
        }
        for client in &served.clients {
            let mut row = vec![served.name.clone(), process.clone(), processes(client)];
            row.extend(ring(&client.requests).into_iter().chain(ring(&client.answers)));
            table.row(row);
        }
    }
    table
}

fn processes(client: &ClientSeen) -> String {
    if client.processes.is_empty() {
        return "?".to_owned();
    }
    client.processes.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn ring(ring: &Occupancy) -> [String; 3] {
    let full = ring.bytes.saturating_mul(100).checked_div(ring.capacity).unwrap_or(0);
    [count(ring.messages as u64), format!("{full} %"), count(ring.dropped)]
}

fn as_json(found: &Found) -> Value {
    let ring = |ring: &Occupancy| json!({"capacity": ring.capacity, "messages": ring.messages, "bytes": ring.bytes, "dropped": ring.dropped});
    let client = |client: &ClientSeen| json!({"pids": client.processes, "requests": ring(&client.requests), "answers": ring(&client.answers)});
    let services: Vec<_> = found
        .services
        .iter()
        .map(|served| {
            let clients: Vec<_> = served.clients.iter().map(client).collect();
            let reasons: Vec<_> = served.reasons.iter().map(ToString::to_string).collect();
            json!({"name": served.name, "path": served.path.to_string_lossy(), "pid": served.process, "clients": clients, "turned_away": served.turned_away, "reasons": reasons})
        })
        .collect();
    let folder = |folder: &Folder| json!({"path": folder.path.to_string_lossy(), "used": folder.is_used(), "said": folder.to_string()});
    let folders: Vec<_> = found.folders.iter().map(folder).collect();
    let async_io = found.async_io.map(|limit| json!({"taken": limit.taken, "most": limit.most}));
    json!({"services": services, "folders": folders, "closed": found.closed, "async_io": async_io})
}

#[cfg(test)]
mod tests {
    use super::{Style, as_json, text};
    use doorbell::rendezvous::Reason;
    use doorbell::service::{AsyncIo, Found, Served};

    #[test]
    fn whom_a_service_turned_away_is_told_with_the_last_reason_and_in_json_with_all() {
        let served = |turned_away, reasons| Found {
            services: vec![Served {
                name: "clock".to_owned(),
                path: "/run/clock.sock".into(),
                process: Some(7),
                clients: Vec::new(),
                turned_away,
                reasons,
            }],
            ..Found::default()
        };
        let told = served(2, vec![Reason::Full { most: 3 }, Reason::NoDescriptors]);
        let said = text(&told, &Style::PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains("clock turned 2 callers away, the last because no descriptor is left"),
            "{said}"
        );
        let reasons = &as_json(&told)["services"][0]["reasons"];
        assert!(reasons[0].as_str().unwrap().contains("(3)"), "{reasons}");
        assert!(!text(&served(0, Vec::new()), &Style::PLAIN).contains("away"));
    }

    #[test]
    fn a_limit_that_is_nearly_met_is_told_and_no_other() {
        let told = |taken| {
            let async_io = Some(AsyncIo { taken, most: 65_536 });
            text(&Found { async_io, ..Found::default() }, &Style::PLAIN).contains("fs.aio-max-nr")
        };
        assert!(told(65_000) && !told(1000));
    }
}
