import { isObject, isText } from './json.ts'
import type { TaskRunState } from './event.ts'

// Services limit the keys of metadata: some to 16 characters.
const REPLACES = 'rivulet_retry_of'
const FIRST = 'rivulet_first'
const NUMBER = 'rivulet_attempt'

/** Which attempt at its input a run is, by the metadata that a retry has written. */
export interface Attempt {
  /** 1 for a run that replaces none. */
  readonly number: number
  /** The id of the run that was the first attempt. */
  readonly first: string
  /** The id of the run that this one replaces; undefined for the first attempt. */
  readonly replaces: string | undefined
}

/** The attempt that a run is. A service may send the metadata with the run, with its input, or with both. */
export function attemptOf({ run, input }: Pick<TaskRunState, 'run' | 'input'>): Attempt {
  const metadata = { ...objectOf(run.metadata), ...objectOf(input?.metadata) }
  const { [REPLACES]: replaces, [FIRST]: first, [NUMBER]: text } = metadata
  const number = typeof text === 'string' && /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 1
  if (!isText(replaces) || !isText(first) || number === 1)
    return { number: 1, first: run.run_id, replaces: undefined }
  return { number, first, replaces }
}

/** The metadata of a run that replaces this one. */
export function metadataOfRetry(
  replaced: Pick<TaskRunState, 'run' | 'input'>,
): Readonly<Record<string, string>> {
  const { number, first } = attemptOf(replaced)
  return { [REPLACES]: replaced.run.run_id, [FIRST]: first, [NUMBER]: String(number + 1) }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {}
}
