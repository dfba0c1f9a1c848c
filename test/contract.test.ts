import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { getOption } from "@bufbuild/protobuf";
import { field as fieldRules } from "@holdfast/api/buf/validate/validate_pb";
import { file_holdfast_v1_common } from "@holdfast/api/holdfast/v1/common_pb";
import { file_holdfast_v1_execution } from "@holdfast/api/holdfast/v1/execution_pb";
import { file_holdfast_v1_file } from "@holdfast/api/holdfast/v1/file_pb";
import { file_holdfast_v1_inventory } from "@holdfast/api/holdfast/v1/inventory_pb";
import { file_holdfast_v1_server } from "@holdfast/api/holdfast/v1/server_pb";
import { file_holdfast_v1_workspace } from "@holdfast/api/holdfast/v1/workspace_pb";
import {
  epochMax,
  executionIdPattern,
  fileBatchMax,
  fileChunkMaxBytes,
  pageSizeMax,
  pathMaxBytes,
  putFileMaxBytes,
  reasonGuide,
  reasons,
  requestMaxBytes,
  runCommandOutputMaxBytes,
  startStopTimeoutMaxMs,
  stdinMaxBytes,
  stdinWriteMaxBytes,
  walkVisitedMax,
  workspaceIdMaxLength,
  workspaceIdPattern,
} from "@holdfast/contract";
import { describe, expect, it } from "vitest";

const root = dirname(import.meta.dirname);
const files = [
  file_holdfast_v1_common,
  file_holdfast_v1_execution,
  file_holdfast_v1_file,
  file_holdfast_v1_inventory,
  file_holdfast_v1_server,
  file_holdfast_v1_workspace,
];
const messages = files.flatMap((file) => file.messages);
const fields = messages.flatMap((message) => message.fields.map((field) => ({ message, field })));

function rulesOf(message: DescMessage, field: DescField) {
  return { where: `${message.name}.${field.name}`, rules: getOption(field, fieldRules) };
}

const pathFields = ["path", "from", "to", "glob"];

const protoOf = (name: string): string => readFileSync(join(root, `proto/holdfast/v1/${name}.proto`), "utf8");

const named = (name: string) =>
  fields.filter(({ field }) => field.name === name).map(({ message, field }) => rulesOf(message, field));

describe("one number, one place: the protos agree with the contract", () => {
  it("on what a workspace id is", () => {
    const requests = named("workspace_id").filter(({ where }) => where.includes("Request."));
    expect(requests.length).toBeGreaterThanOrEqual(8);
    for (const { where, rules } of requests) {
      expect(rules.type, where).toMatchObject({
        case: "string",
        value: { maxLen: BigInt(workspaceIdMaxLength), pattern: workspaceIdPattern.source },
      });
    }
  });

  it("on the largest epoch", () => {
    for (const { where, rules } of named("epoch")) {
      expect(rules.type, where).toMatchObject({ case: "uint64", value: { lte: BigInt(epochMax) } });
    }
  });

  it("on the longest start and stop", () => {
    const bounded = [...named("ready_timeout"), ...named("stop_timeout")];
    expect(bounded).toHaveLength(6);
    for (const { where, rules } of bounded) {
      expect(rules.type, where).toMatchObject({
        case: "duration",
        value: { lte: { seconds: BigInt(startStopTimeoutMaxMs / 1000) } },
      });
    }
  });

  it("on standard input, page size, output caps and execution ids", () => {
    for (const { where, rules } of named("stdin")) {
      const limit = where.startsWith("ExecuteInteractiveRequest") ? stdinWriteMaxBytes : stdinMaxBytes;
      expect(rules.type, where).toMatchObject({ value: { maxLen: BigInt(limit) } });
    }
    for (const { where, rules } of named("page_size"))
      expect(rules.type, where).toMatchObject({ value: { lte: pageSizeMax } });
    const caps = named("max_output").filter(({ where }) => where.startsWith("RunCommand"));
    expect(caps[0]?.rules.type).toMatchObject({ value: { lte: runCommandOutputMaxBytes } });
    for (const { where, rules } of named("execution_id").filter(({ where }) => where.includes("Request."))) {
      // A start may leave it out, so that one is minted.
      const starts = /^(Execute|RunCommand)Request/.test(where);
      expect(rules.type, where).toMatchObject({
        value: starts ? { maxLen: 64n } : { pattern: executionIdPattern.source },
      });
      expect(executionIdPattern.source).toContain("{1,64}");
    }
  });

  it("on paths, contents of files and what one walk may look at", () => {
    const paths = fields
      .filter(({ message, field }) => message.file === file_holdfast_v1_file && pathFields.includes(field.name))
      .filter(({ message }) => message.name.endsWith("Request") || message.name === "WriteFileStart")
      .map(({ message, field }) => rulesOf(message, field));
    expect(paths.length).toBeGreaterThanOrEqual(11);
    for (const { where, rules } of paths) {
      expect(rules.type, where).toMatchObject({
        case: "string",
        value: { maxBytes: BigInt(pathMaxBytes), notContains: "\0" },
      });
    }
    const contents = named("data").filter(({ where }) => where.endsWith("Request.data"));
    expect(contents.map(({ where }) => where)).toEqual(["WriteFileRequest.data", "PutFileRequest.data"]);
    for (const { where, rules } of contents) {
      expect(rules.type, where).toMatchObject({ value: { maxLen: BigInt(putFileMaxBytes) } });
    }
    // With what comes around it, the largest content still fits a request.
    expect(putFileMaxBytes + 2 * pathMaxBytes).toBeLessThan(requestMaxBytes);
    expect(named("max_visited")[0]?.rules.type).toMatchObject({ value: { lte: BigInt(walkVisitedMax) } });
    const text = protoOf("file");
    expect(text).toContain(`Default and most: ${walkVisitedMax.toLocaleString("en")}.`);
    expect(text.match(/At most 500\./g)).toHaveLength(2);
    expect(fileBatchMax).toBe(500);
    expect(text).toContain(`At most ${fileChunkMaxBytes / 1024} KiB.`);
  });

  it("on reasons: each is given somewhere, or its guide says that this release gives it nowhere", () => {
    const isSource = (name: string) =>
      name.endsWith(".ts") && !/\.(test|testing)\.ts$|(^|\/)(gen|node_modules)\//.test(name);
    const given = new Set(
      ["packages", "services"].flatMap((folder) =>
        globSync("*/src/**/*.ts", { cwd: join(root, folder) })
          .filter((name) => isSource(name) && !name.startsWith("contract/") && !name.startsWith("testkit/"))
          .flatMap(
            (name) => readFileSync(join(root, folder, name), "utf8").match(/(?<=")[A-Z]+(?:_[A-Z0-9]+)+(?=")/g) ?? [],
          ),
      ),
    );
    const nowhere = Object.keys(reasons).filter((reason) => !given.has(reason));
    const saying = Object.entries(reasonGuide).filter(([, { means }]) => means.startsWith("Not given by this release"));
    expect(nowhere).toEqual(saying.map(([reason]) => reason));
  });

  it("on reasons: a proto comment names only what the catalogue has", () => {
    const texts = ["workspace", "execution", "inventory", "common", "file", "server"].map(protoOf);
    const mentioned = texts.flatMap((text) =>
      [...text.matchAll(/\/\/ +Reasons[^:]*:((?:.*\n *\/\/)*.*)\n/g)].flatMap(
        (match) => match[1]?.match(/\b[A-Z][A-Z]+(?:_[A-Z]+)+\b/g) ?? [],
      ),
    );
    expect(mentioned.length).toBeGreaterThan(20);
    expect([...new Set(mentioned)].filter((reason) => !(reason in reasons))).toEqual([]);
  });
});
