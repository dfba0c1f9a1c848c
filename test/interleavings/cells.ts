import { apiFaults, faultedRequests, foreignDeeds } from "./steps.ts";
import type { Tally } from "./tally.ts";
import { deleteVerbs, type Verb, verbs } from "./world/calls.ts";
import { guestFaults } from "./world/model-guests.ts";

/** States in which a call may find the handle; `none`: there is none. */
const states = [
  "none",
  "opening",
  "active",
  "unbound",
  "closing",
  "suspending",
  "suspended",
  "resuming",
  "deleting",
  "gone",
] as const;

interface Table {
  readonly name: string;
  readonly rows: readonly string[];
  readonly columns: readonly string[];
  readonly count: (tally: Tally, row: string, column: string) => number;
  /** Why a cell cannot be met; undefined: it can. */
  readonly impossible: (row: string, column: string) => string | undefined;
}

const ofGuests = guestFaults.map((fault) => `guest ${fault}`);
const writesOnly: readonly string[] = ["lost_after", "late", "late_last"];
const sendNoWrite: readonly Verb[] = ["read", "execute", "program"];
const askNoGuest: readonly Verb[] = ["read", "object_suspend", ...deleteVerbs];

/** What a run must have met, cell by cell. */
export const tables: readonly Table[] = [
  {
    name: "verb × state of its replica's handle",
    rows: verbs,
    columns: states,
    count: (tally, verb, state) => tally.of(`verb ${verb}`).get(state) ?? 0,
    impossible: () => undefined,
  },
  {
    name: "verb × fault that one of its requests met",
    rows: verbs,
    columns: [...apiFaults, ...ofGuests],
    count: (tally, verb, fault) => tally.of(`verb and fault: ${verb}`).get(fault) ?? 0,
    impossible: (verb, fault) => {
      if (verb === "close") return "it sends nothing";
      if (writesOnly.includes(fault) && sendNoWrite.includes(verb as Verb)) return "it writes nothing";
      if (ofGuests.includes(fault) && askNoGuest.includes(verb as Verb)) return "no guest is asked for it";
      return undefined;
    },
  },
  {
    name: "request × fault",
    rows: faultedRequests,
    columns: apiFaults,
    count: (tally, request, fault) => tally.of("fault").get(`${request} ${fault}`) ?? 0,
    impossible: (request, fault) =>
      writesOnly.includes(fault) && /^(get|list) /.test(request) ? "a read has no effect to land" : undefined,
  },
  {
    name: "what others did",
    rows: [...foreignDeeds, "controller stall", "controller catch_up", "controller restart", "restart of a replica"],
    columns: ["times"],
    count: (tally, deed) => tally.of("foreign").get(deed) ?? 0,
    impossible: () => undefined,
  },
];

export function tableText({ name, rows, columns, count, impossible }: Table, tally: Tally): string {
  const lines = rows.map((row) => {
    const cells = columns.map((column) => {
      const times = count(tally, row, column);
      return (times === 0 && impossible(row, column) !== undefined ? "-" : String(times)).padStart(12);
    });
    return row.padEnd(22) + cells.join("");
  });
  const head = "".padEnd(22) + columns.map((column) => column.replace("guest ", "g:").padStart(12)).join("");
  return [name, head, ...lines].join("\n");
}

/** Cells that were not met, though they could be. */
export function missing(tally: Tally): readonly string[] {
  return tables.flatMap(({ name, rows, columns, count, impossible }) =>
    rows.flatMap((row) =>
      columns
        .filter((column) => count(tally, row, column) === 0 && impossible(row, column) === undefined)
        .map((column) => `${name}: ${row}, ${column}`),
    ),
  );
}
