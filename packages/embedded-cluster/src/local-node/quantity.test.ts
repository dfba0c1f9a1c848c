import { expect, it } from "vitest";
import { quantityOf } from "./quantity.ts";

it.each([
  ["128Mi", 134_217_728],
  ["1.5Gi", 1_610_612_736],
  ["500m", 0.5],
  ["2", 2],
  [2, 2],
  ["1e3", 1000],
  ["5E", 5e18],
  ["12k", 12_000],
  [".5", 0.5],
])("reads the quantity %s", (text, number) => {
  expect(quantityOf(text)).toBe(number);
});

it.each(["", "much", "1Q", "-1", "1 Gi", "1.2.3", null, {}])("takes %j for no quantity", (text) => {
  expect(quantityOf(text)).toBeUndefined();
});
