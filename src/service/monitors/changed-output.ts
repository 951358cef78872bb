import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../protocol/json.ts'
import type { FieldBasis, JsonOutput, TaskOutput } from '../../protocol/output.ts'

/**
 * The changed fields of an output, each with its basis (§2.2); undefined if none has changed. A text is one field, and so is
 * an output whose type has changed.
 *
 * Values are compared, not their basis: other citations or another reasoning for the same value are no change. A different order of an
 * object's members is no change either. A field that has disappeared has a basis but no content.
 */
export function changedOutput(previous: TaskOutput, current: TaskOutput): TaskOutput | undefined {
  if (previous.type === 'json' && current.type === 'json') return changedFields(previous, current)
  return previous.type === current.type && previous.content === current.content ? undefined : current
}

function changedFields(previous: JsonOutput, current: JsonOutput): JsonOutput | undefined {
  const [before, after] = [fieldsOf(previous), fieldsOf(current)]
  const names = new Set([...before.keys(), ...after.keys()])
  const changed = new Set(
    [...names].filter(
      (name) => before.has(name) !== after.has(name) || !isDeepStrictEqual(before.get(name), after.get(name)),
    ),
  )
  if (changed.size === 0) return undefined
  const basis = current.basis.filter(({ field }) => changed.has(fieldOf(field, names)))
  const explained = new Set(basis.map(({ field }) => field))
  const disappeared = [...changed].filter((name) => !after.has(name) && !explained.has(name))
  return {
    ...current,
    content: Object.fromEntries([...after].filter(([name]) => changed.has(name))),
    basis: [...basis, ...disappeared.map(disappearance)],
  }
}

function fieldsOf({ content }: JsonOutput): Map<string, unknown> {
  // A custom processor may return anything.
  return new Map(isObject(content) ? Object.entries(content) : [])
}

function disappearance(field: string): FieldBasis {
  return { field, reasoning: 'The output no longer has this field.', citations: [], confidence: null }
}

/** The top-level field of a basis: `founders` of `founders.0.name` and of `founders[0]`. Names may contain a dot too. */
function fieldOf(path: string, names: ReadonlySet<string>): string {
  for (let end = path.length; end > 0; end--) {
    const isWhole = end === path.length || path[end] === '.' || path[end] === '['
    if (isWhole && names.has(path.slice(0, end))) return path.slice(0, end)
  }
  return path
}
