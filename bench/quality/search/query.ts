/** An item of `bench/quality/search/`: the query and the package whose documents it is about. */
export interface Query {
  /** The name of the package; it selects the half. */
  readonly subject: string
  /** A description without the name of the package, or a paraphrase in other words. */
  readonly kind: 'description' | 'paraphrase'
  readonly query: string
}
