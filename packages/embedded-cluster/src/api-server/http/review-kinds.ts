/** The kinds that are created only to be answered: nothing of them is stored. */
export interface ReviewKindSpec {
  readonly group: "authentication.k8s.io" | "authorization.k8s.io";
  readonly plural: string;
  readonly kind: ReviewKind;
}

export type ReviewKind =
  | "TokenReview"
  | "SelfSubjectReview"
  | "SubjectAccessReview"
  | "SelfSubjectAccessReview"
  | "SelfSubjectRulesReview";

/** All of version v1, none of a namespace. */
export const reviewKinds: readonly ReviewKindSpec[] = [
  { group: "authentication.k8s.io", plural: "selfsubjectreviews", kind: "SelfSubjectReview" },
  { group: "authentication.k8s.io", plural: "tokenreviews", kind: "TokenReview" },
  { group: "authorization.k8s.io", plural: "selfsubjectaccessreviews", kind: "SelfSubjectAccessReview" },
  { group: "authorization.k8s.io", plural: "selfsubjectrulesreviews", kind: "SelfSubjectRulesReview" },
  { group: "authorization.k8s.io", plural: "subjectaccessreviews", kind: "SubjectAccessReview" },
];

export const reviewGroups: readonly string[] = [...new Set(reviewKinds.map((review) => review.group))];
