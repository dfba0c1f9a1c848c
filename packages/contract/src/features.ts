/** What a guest can do, by the names it announces. */
export const guestFeatures = [
  "executions",
  "execution-control",
  "files",
  "flush",
  "holder-epoch",
  "ports",
  "probe",
  "quiesce",
  "sessions",
] as const;
export type GuestFeature = (typeof guestFeatures)[number];
