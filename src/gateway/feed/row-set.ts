import type { Access } from '../access/access.ts'
import { Omission } from '../access/omission.ts'
import type { StateChange } from '../../log/store/process-store.ts'
import type { RowKey } from '../../protocol/live.ts'

/** The resource of a row; undefined for none. */
export type SourceOf = (key: RowKey) => string | undefined

/** The shape of a grant that leaves nothing out. */
const WHOLE = new Omission([]).shape

/** The rows that one access makes visible. */
export interface VisibleRows {
  /** The same text for accesses that see the same. */
  readonly sameFor: string
  /** Whether there is any row. */
  readonly isEmpty: boolean
  /** The rows as JSON: a list of `RowState`s. */
  json(): string
}

/** Rows of one view, each with its resource, which its path alone decides: so a removed row is judged as it was before. */
export class RowSet {
  readonly #rows: readonly StateChange[]
  /** The resources of the rows, each once, and for each row the index of its resource. */
  readonly #sources: readonly (string | undefined)[]
  readonly #sourceOf: readonly number[]

  constructor(rows: readonly StateChange[], sourceOf: SourceOf) {
    const sources = new Map<string | undefined, number>()
    this.#rows = rows
    this.#sourceOf = rows.map(({ key }) => {
      const source = sourceOf(key)
      const index = sources.get(source) ?? sources.size
      sources.set(source, index)
      return index
    })
    this.#sources = [...sources.keys()]
  }

  /** The rows that an access makes visible. Accesses with an equal {@link VisibleRows.sameFor} share the functions of this object. */
  visibleTo(access: Access): VisibleRows {
    // As text, since this is called for each client and segment.
    let visible = ''
    for (const source of this.#sources) visible += access.maySeeSource(source) ? '1' : '0'
    return {
      sameFor: `${visible} ${access.shape}`,
      isEmpty: !visible.includes('1'),
      json: () => {
        const texts: string[] = []
        for (const [index, { key, state }] of this.#rows.entries()) {
          if (visible[this.#sourceOf[index] ?? -1] !== '1') continue
          texts.push(`[${JSON.stringify(key)},${state === null ? 'null' : shaped(state, access)}]`)
        }
        return `[${texts.join()}]`
      },
    }
  }
}

/** A state as an access sees it, as JSON. */
function shaped(state: string, access: Access): string {
  return access.shape === WHOLE ? state : JSON.stringify(access.omit(JSON.parse(state)))
}
