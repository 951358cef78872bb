/** Names of one level, and the fields to omit below them. */
interface OmittedNames {
  /** Whether a path ends here. */
  isEnd: boolean
  readonly below: Map<string, OmittedNames>
}

/** A part of a value that is being copied: its source, its target, and the paths that began above it. */
interface Copying {
  readonly from: object
  readonly to: object
  readonly begun: readonly OmittedNames[]
}

/** Leaves fields out of JSON values. */
export class Omission {
  /** The same text for the same fields. */
  readonly shape: string
  readonly #root: OmittedNames = { isEnd: false, below: new Map() }

  /** @param paths Names with dots between them. */
  constructor(paths: readonly string[]) {
    const sorted = [...new Set(paths)].toSorted()
    this.shape = JSON.stringify(sorted)
    for (const path of sorted) {
      // A key of a record may have a dot in it.
      for (const names of new Set([path.split('.'), [path]])) this.#add(names)
    }
  }

  /**
   * The value without the fields; the value itself if no field is left out. A copy has only own properties, whatever their names. Time and
   * memory are linear in the value, however deep it is.
   */
  of(value: unknown): unknown {
    if (this.#root.below.size === 0 || !isContainer(value)) return value
    const copy = emptyLike(value)
    // A list instead of recursion, since JSON.parse accepts any depth.
    const copying: Copying[] = [{ from: value, to: copy, begun: [] }]
    for (let next = copying.pop(); next !== undefined; next = copying.pop()) {
      const { from, to, begun } = next
      const isList = Array.isArray(from)
      for (const [name, part] of Object.entries(from)) {
        const reached = isList ? begun : this.#reached(name, begun)
        if (reached === undefined) continue
        const isInner = isContainer(part)
        const copied = isInner ? emptyLike(part) : part
        setOwn(to, name, copied)
        if (isInner) copying.push({ from: part, to: Object(copied), begun: reached })
      }
    }
    return copy
  }

  #add(names: readonly string[]): void {
    let node = this.#root
    for (const name of names) {
      const below = node.below.get(name) ?? { isEnd: false, below: new Map() }
      node.below.set(name, below)
      node = below
    }
    node.isEnd = true
  }

  /** The paths that continue below a field; undefined if the field is left out. */
  #reached(name: string, begun: readonly OmittedNames[]): readonly OmittedNames[] | undefined {
    const reached: OmittedNames[] = []
    for (const { below } of [this.#root, ...begun]) {
      const node = below.get(name)
      if (node === undefined) continue
      if (node.isEnd) return undefined
      reached.push(node)
    }
    return reached
  }
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function emptyLike(value: object): object {
  return Array.isArray(value) ? [] : {}
}

/** Sets a property, also one named `__proto__`, to which an assignment would set the prototype. */
function setOwn(object: object, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
  } else Reflect.set(object, name, value)
}
