/** The name of a reader in the store that is a part of another one: `consumer.17:archive` of `consumer:archive`. */
export function partName(reader: string, part: number): string {
  const kind = reader.slice(0, reader.indexOf(':'))
  return `${kind}.${part}${reader.slice(kind.length)}`
}

/** The name of the reader of which this one is a part; its own where it is none. */
export function wholeName(reader: string): string {
  return reader.replace(/^([a-z]+)\.\d+:/, '$1:')
}

/** The names of a reader and of its parts, of those that a log has. */
export function namesOf(reader: string, known: Iterable<string>): ReadonlySet<string> {
  return new Set([reader, ...Array.from(known).filter((name) => wholeName(name) === reader)])
}
