/** The position of an upstream stream at one moment. It becomes text only when it is saved. */
export interface StreamPosition {
  text(): string
}
