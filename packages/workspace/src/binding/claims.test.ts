import { describe, expect, it } from "vitest";
import { recordedClaims } from "./claims.ts";

describe("L16 the record of the disk's claims", () => {
  it.each([
    [undefined, {}],
    ["", {}],
    ["a=1", { a: "1" }],
    ["a=1,b=2", { a: "1", b: "2" }],
    [" a = 1 , b=2 ", { a: "1", b: "2" }],
    ["a=,=1,b,,=", {}],
    ["a=,b=2", { b: "2" }],
  ])("reads %j as %j: half a pair records nothing", (text, claims) => {
    expect(recordedClaims(text)).toEqual(claims);
  });
});
