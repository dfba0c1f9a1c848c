import { HoldfastError } from "@holdfast/errors";

/** A declared RPC that this release does not serve: refused by name. */
export function notServed(): never {
  throw new HoldfastError("FIELD_NOT_SERVED", {
    message: "The call was not carried out: this release declares it, and does not serve it yet.",
  });
}
