import type { ReadUnit } from './place.ts'

/** The units around a unit. */
export interface Surroundings {
  /** The other sentences of its paragraph or list item. */
  readonly block: readonly ReadUnit[]
  /** The units before and after it, under the same heading. */
  readonly near: readonly ReadUnit[]
  /** The code or the list after a colon; else the next sentence of the same paragraph. */
  readonly continuation: string | undefined
  /** The first sentence of the list item that the unit continues: it names the subject of the item. */
  readonly opening: string | undefined
  /** The comments above a line of code. */
  readonly comments: readonly ReadUnit[]
  /** The last sentence before a code block. */
  readonly announcement: ReadUnit | undefined
}

/** Maximum number of units before and after a unit that surround it. */
const MAX_AROUND = 4

export function surroundingsOf(units: readonly ReadUnit[], index: number): Surroundings {
  const one = units[index]?.unit
  const around = units.slice(Math.max(0, index - MAX_AROUND), index + MAX_AROUND + 1)
  const before = units.slice(Math.max(0, index - MAX_AROUND), index)
  return {
    comments: commentsAbove(units, index),
    continuation: continuationOf(units, index),
    opening: openingOf(before, one),
    announcement: one?.kind === 'code' ? before.findLast(({ unit }) => unit.kind !== 'code') : undefined,
    block: around.filter(
      ({ unit }) => unit !== one && unit.kind !== 'code' && unit.block === one?.block && unit.kind !== 'row',
    ),
    near: [units[index - 1], units[index + 1]]
      .filter((other) => other !== undefined)
      .filter(({ unit }) => unit.heading === one?.heading),
  }
}

function openingOf(before: readonly ReadUnit[], one: ReadUnit['unit'] | undefined): string | undefined {
  if (one?.kind !== 'item') return undefined
  return before.find(({ unit }) => unit.block === one.block && unit.kind === 'item')?.unit.text
}

/** Maximum length of a unit's continuation, in characters. */
const MAX_CONTINUATION = 400

function continuationOf(units: readonly ReadUnit[], index: number): string | undefined {
  const one = units[index]?.unit
  const next = units[index + 1]?.unit
  if (one === undefined || next?.heading !== one.heading || one.kind === 'code') return undefined
  const isAnnouncement = one.text.endsWith(':')
  if (!isAnnouncement) {
    const isNextSentence = next.block === one.block && next.kind === one.kind && one.kind !== 'row'
    return isNextSentence && next.text.length <= MAX_CONTINUATION ? next.text : undefined
  }
  if (next.kind === 'sentence') return undefined
  const lines: string[] = []
  let length = 0
  for (const { unit } of units.slice(index + 1)) {
    const isSame = unit.kind === next.kind && (unit.kind !== 'code' || unit.block === next.block)
    length += unit.text.length
    if (!isSame || unit.heading !== one.heading || length > MAX_CONTINUATION) break
    lines.push(unit.text)
  }
  return lines.length === 0 ? undefined : lines.join('\n')
}

/** A line of code that is only a comment. */
const COMMENT = /^(?:\/\/|\/?\*|#)/

/** The comments directly above a line of code, such as the description of an option. */
function commentsAbove(units: readonly ReadUnit[], index: number): readonly ReadUnit[] {
  const one = units[index]?.unit
  if (one?.kind !== 'code' || COMMENT.test(one.text)) return []
  const found: ReadUnit[] = []
  for (let at = index - 1; at >= 0 && found.length < MAX_AROUND; at -= 1) {
    const above = units[at]
    if (above?.unit.block !== one.block || !COMMENT.test(above.unit.text)) break
    found.unshift(above)
  }
  return found
}
