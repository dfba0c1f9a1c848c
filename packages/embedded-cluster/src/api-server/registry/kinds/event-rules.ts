import { isObject, stringIn } from "../../../json.ts";
import { invalidValue } from "../metadata-rules.ts";
import type { KindRules } from "./kind-rules.ts";

export const eventRules: KindRules = {
  withDefaults: (event) => ({
    ...event,
    eventTime: event.eventTime ?? null,
    reportingComponent: event.reportingComponent ?? "",
    reportingInstance: event.reportingInstance ?? "",
  }),
  /** An event stands in the namespace of what it is about; one about what has no namespace, in `default`. */
  validate: ({ metadata, involvedObject }) => {
    const about = isObject(involvedObject) ? (stringIn(involvedObject, "namespace") ?? "") : "";
    const wanted = about === "" ? "default" : about;
    if (wanted === (metadata.namespace ?? "")) return [];
    return [invalidValue("involvedObject.namespace", about, "does not match event.namespace")];
  },
};
