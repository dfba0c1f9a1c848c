/** What a guest can do, by the names it announces. */
export const guestFeatures = ["executions", "files", "probe"] as const;
export type GuestFeature = (typeof guestFeatures)[number];
