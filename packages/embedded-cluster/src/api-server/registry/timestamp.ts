/** Whole seconds, as the API writes metav1.Time. */
export function rfc3339(at: Date): string {
  return `${at.toISOString().slice(0, 19)}Z`;
}
