/** Returns the values in a cycle; `otherwise` where there are none. */
export function cycle<T>(values: readonly T[], otherwise: T): () => T {
  let turn = 0
  return () => {
    const value = values[turn % values.length]
    turn += 1
    return value ?? otherwise
  }
}
