import { type DescMessage, isFieldSet, type Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { type Duration, DurationSchema, type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { createValidator } from "@bufbuild/protovalidate";
import { errorValueMaxLength, violationsNamedMax } from "@holdfast/contract";
import { type FieldViolation, HoldfastError } from "@holdfast/errors";

// Built once: each message type's rules are compiled at its first request and kept.
const validator = createValidator();

/** Throws INVALID_REQUEST with every violation of the rules that the proto declares for this message. */
export function assertValid(schema: DescMessage, request: Message): void {
  const found = [...outOfRange(schema, request, ""), ...declared(schema, request)];
  if (found.length > 0) throw invalidRequest(found);
}

/** INVALID_REQUEST from violations; the first ones by name, the rest counted. */
export function invalidRequest(found: readonly FieldViolation[]): HoldfastError {
  const named = found.slice(0, violationsNamedMax).map(({ field, description }) => ({
    field: shorten(field),
    description: shorten(description),
  }));
  const more = found.length - named.length;
  if (more > 0) named.push({ field: "", description: `and ${more} more` });
  const said = named.slice(0, 4).map(({ field, description }) => `${field}: ${description}`);
  const unsaid = found.length - Math.min(4, named.length);
  return new HoldfastError("INVALID_REQUEST", {
    message: `The call was not carried out: ${said.join("; ")}${unsaid > 0 ? `; and ${unsaid} more` : ""}.`,
    metadata: named[0]?.field ? { field: named[0].field } : {},
    violations: named,
  });
}

function declared(schema: DescMessage, request: Message): FieldViolation[] {
  const result = validator.validate(schema, request);
  if (result.kind === "valid") return [];
  if (result.kind === "error") throw result.error; // The rules themselves are wrong: a defect.
  return result.violations.map((violation) => {
    const whole = violation.toString();
    const end = whole.indexOf(`: ${violation.message}`);
    return { field: end > 0 ? whole.slice(0, end) : "", description: violation.message };
  });
}

/** Durations and timestamps that are none: the rules of protovalidate compare them as they are. */
function outOfRange(schema: DescMessage, message: Message, path: string): FieldViolation[] {
  const found: FieldViolation[] = [];
  for (const field of schema.fields) {
    if (field.fieldKind !== "message" || !isFieldSet(message, field)) continue;
    const value = reflect(schema, message).get(field).message;
    const name = `${path}${field.name}`;
    if (field.message.typeName === DurationSchema.typeName) {
      if (!isDuration(value as Duration)) found.push({ field: name, description: "is not a duration" });
    } else if (field.message.typeName === TimestampSchema.typeName) {
      if (!isTimestamp(value as Timestamp)) found.push({ field: name, description: "is not a time" });
    } else {
      found.push(...outOfRange(field.message, value, `${name}.`));
    }
  }
  return found;
}

const durationMaxSeconds = 315_576_000_000n;
const timestampMinSeconds = -62_135_596_800n;
const timestampMaxSeconds = 253_402_300_799n;

function isDuration({ seconds, nanos }: Duration): boolean {
  if (seconds < -durationMaxSeconds || seconds > durationMaxSeconds) return false;
  if (nanos < -999_999_999 || nanos > 999_999_999) return false;
  return !((seconds > 0n && nanos < 0) || (seconds < 0n && nanos > 0));
}

function isTimestamp({ seconds, nanos }: Timestamp): boolean {
  return seconds >= timestampMinSeconds && seconds <= timestampMaxSeconds && nanos >= 0 && nanos <= 999_999_999;
}

function shorten(text: string): string {
  return text.length <= errorValueMaxLength ? text : `${text.slice(0, errorValueMaxLength)}…`;
}
