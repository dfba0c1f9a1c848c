// `npm run cluster -- faults …`: the fault knobs of an embedded cluster that was started with --allow-faults.
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { join, resolve } from "node:path";
import { parse } from "yaml";

const usage = `npm run cluster -- faults list                 the rules that stand, and how often each was met
npm run cluster -- faults add '{"match": …}'    adds a rule, or does something once (docs/operations.md)
npm run cluster -- faults clear [ID]            takes back all rules, or one; what is held goes on
  --data-dir path   of the cluster (default: HOLDFAST_DATA_DIR, else .holdfast)`;

class UsageError extends Error {}

function readArguments(argv: readonly string[]): { words: readonly string[]; dataDir: string } {
  const words: string[] = [];
  let dataDir = process.env.HOLDFAST_DATA_DIR || ".holdfast";
  for (let at = 0; at < argv.length; at++) {
    const [word = "", value] = [argv[at], argv[at + 1]];
    if (word.startsWith("--data-dir=")) dataDir = word.slice("--data-dir=".length);
    else if (word === "--data-dir") {
      if (value === undefined || value.startsWith("--")) throw new UsageError("--data-dir needs a value");
      dataDir = value;
      at++;
    } else if (word.startsWith("--")) throw new UsageError(`unknown flag ${word}`);
    else words.push(word);
  }
  if (dataDir === "") throw new UsageError("--data-dir must be a path");
  return { words, dataDir: resolve(dataDir) };
}

function requestFor(words: readonly string[]): { method: string; path: string; body?: string } {
  const [command, argument, ...rest] = words;
  const path = "/holdfast/faults";
  if (rest.length > 0) throw new UsageError(`too many words: ${rest.join(" ")}`);
  if (command === "list" && argument === undefined) return { method: "GET", path };
  if (command === "add" && argument !== undefined) return { method: "POST", path, body: argument };
  if (command === "clear") {
    return { method: "DELETE", path: argument === undefined ? path : `${path}/${encodeURIComponent(argument)}` };
  }
  throw new UsageError(command === undefined ? "list, add or clear?" : `cannot read "${words.join(" ")}"`);
}

function send(dataDir: string, { method, path, body }: ReturnType<typeof requestFor>): Promise<[number, string]> {
  const config = parse(readFileSync(join(dataDir, "kubeconfig"), "utf8"));
  const { cluster } = config.clusters[0];
  const { token } = config.users[0].user;
  const ca = Buffer.from(String(cluster["certificate-authority-data"]), "base64");
  const headers = {
    authorization: `Bearer ${String(token)}`,
    ...(body === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
  };
  return new Promise((resolvePromise, reject) => {
    const sent = request(new URL(path, String(cluster.server)), { method, ca, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("error", reject);
      response.on("end", () => resolvePromise([response.statusCode ?? 0, text]));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

try {
  const { words, dataDir } = readArguments(process.argv.slice(2));
  const [code, text] = await send(dataDir, requestFor(words));
  const answer = JSON.parse(text);
  if (code >= 400) {
    console.error(`holdfast: ${answer.message}`);
    process.exitCode = 1;
  } else if (Array.isArray(answer.items)) {
    for (const { id, rule, met } of answer.items) console.log(`${id}  met ${met}  ${JSON.stringify(rule)}`);
    if (answer.items.length === 0) console.log("no rules");
  } else console.log(JSON.stringify(answer));
} catch (error) {
  const why = error instanceof Error ? error.message : String(error);
  console.error(error instanceof UsageError ? `holdfast: ${why}\n\n${usage}` : `holdfast: no cluster answered: ${why}`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
