import { describe, expect, it } from "vitest";
import * as contract from "./index.ts";

/** Between the service and its guests or its cluster: no caller ever meets them. */
const internal = [
  "changeLogMax",
  "looksAtOnceMax",
  "readsInsteadOfListMax",
  ...Object.keys(contract).filter((name) => name.startsWith("link")), // the link to the guest
];

const isLimit = (name: string): boolean => /(Max|MaxBytes|MaxMs|MaxLength|Default|DefaultMs)$/.test(name);
const snakeCase = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

describe("the limits that are told", () => {
  const constants = Object.entries(contract).filter(
    (entry): entry is [string, number] => typeof entry[1] === "number" && isLimit(entry[0]),
  );

  it("are every limit and default of the contract that is not internal, under its own name and with its value", () => {
    const due = constants.filter(([name]) => !internal.includes(name));
    expect(due.length).toBeGreaterThan(30);
    expect(contract.toldLimits).toEqual(Object.fromEntries(due.map(([name, value]) => [snakeCase(name), value])));
  });

  it("are numbers that fit the wire", () => {
    for (const [name, value] of Object.entries(contract.toldLimits)) {
      expect(Number.isSafeInteger(value) && value > 0, name).toBe(true);
    }
  });
});
