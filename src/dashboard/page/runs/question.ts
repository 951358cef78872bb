import type { GroupRunRow } from '../rows.ts'
import { isObject, oneLine } from '../evidence/evidence.ts'

/** What a run was asked, in a line: its input, else its metadata; undefined where its events brought neither. */
export function questionOf({ run, input }: Pick<GroupRunRow, 'run' | 'input'>): string | undefined {
  const asked = input?.input
  return (typeof asked === 'string' ? oneLine(asked, 200) : textOf(asked)) ?? textOf(run.metadata)
}

function textOf(value: unknown): string | undefined {
  if (!isObject(value)) return undefined
  const texts = Object.values(value).filter((each) => typeof each === 'string' || typeof each === 'number')
  return texts.length === 0 ? undefined : oneLine(texts.join(' · '), 200)
}
