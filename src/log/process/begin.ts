import type { Fence, LogStore, Position } from '../store/contract.ts'
import { errorText } from '../../protocol/error-text.ts'
import { NO_TIME } from '../../streams/clocks.ts'
import { RefusedEffect } from '../../streams/refused-effect.ts'
import { ProcessError } from '../../streams/process-error.ts'
import { jsonOf } from '../../streams/stored-json.ts'
import { MAX_EFFECT_BYTES, stateBytes } from '../../streams/sizes.ts'
import { ProcessVersionError } from '../errors.ts'
import type { StateChange } from '../store/process-store.ts'
import type { ProcessOptions } from './process.ts'
import { checkpointOf, progressOf } from './progress.ts'
import type { Migration, Progress } from './progress.ts'

/** Maximum number of states that are migrated in one commit. */
const MIGRATED_STATES = 200

/** Position of a process in the log. */
export interface Standing {
  readonly cursor: Position
  readonly progress: Progress
}

/** The settings that decide how a process begins. */
type BeginSettings = Pick<
  ProcessOptions<unknown>,
  'version' | 'startAt' | 'migrate' | 'rebuild' | 'holdsRetention'
> & { readonly shape?: string }

/** The process whose state is read. */
interface Claimed {
  readonly store: LogStore
  readonly fence: Fence
  /** As the user has it. */
  readonly name: string
  readonly signal: AbortSignal
}

/**
 * Loads the position of a process, and brings its state to this version. After an interruption, the next call goes on.
 *
 * @throws {ProcessVersionError} for a version that cannot run.
 */
export async function begin(claimed: Claimed, settings: BeginSettings): Promise<Standing> {
  const { store, fence, name } = claimed
  const reader = await store.reader(fence.name)
  const { version, shape, startAt = 'start', migrate, rebuild = false, holdsRetention = true } = settings
  if (reader?.process === undefined) {
    const beginAt = async (start: Position, expect: Position | null): Promise<Standing> => {
      const progress: Progress = { version, shape, start, clocks: NO_TIME }
      const process = { checkpoint: checkpointOf(progress), holdsRetention, state: [], timers: [] }
      await store.commit(fence, { expect, cursor: start, acknowledged: [], process })
      return { cursor: start, progress }
    }
    const standing = await beginAt(await store.positionAt(startAt), reader?.cursor ?? null)
    // Entries that were appended after the process was created belong to it.
    if (startAt === 'end') return standing
    // Entries may have been deleted before the process was there to keep them.
    const start = await store.positionAt(startAt)
    return start === standing.cursor ? standing : beginAt(start, standing.cursor)
  }
  const { cursor } = reader
  const { checkpoint } = reader.process
  const progress = progressOf(name, checkpoint)
  const refused = (problem: string) => new ProcessVersionError(name, progress.version, version, problem)
  if (version < progress.version) throw refused('start the newer program, or give this one a higher version')
  const { migration } = progress
  if (version === progress.version && shape !== progress.shape) {
    throw refused('what it computes has changed: give it a higher version')
  }
  if (version === progress.version && migration === undefined) {
    if (holdsRetention !== reader.process.holdsRetention) {
      const process = { checkpoint, holdsRetention, state: [], timers: [] }
      await store.commit(fence, { expect: cursor, cursor, acknowledged: [], process })
    }
    return { cursor, progress }
  }
  if (migrate !== undefined && (migration === undefined || version === progress.version)) {
    const target = { version, migrate, holdsRetention }
    return { cursor, progress: await migrated(claimed, cursor, progress, target) }
  }
  if (rebuild !== false)
    return restarted(claimed, cursor, progress, { version, shape, rebuild, holdsRetention })
  if (migration !== undefined) {
    throw refused(
      `the migration of its states from version ${migration.from} is not finished. Run it in version ${progress.version} ` +
        'with `migrate` first, or set `rebuild: true`',
    )
  }
  if (shape !== undefined) throw refused('set `rebuild: true`')
  throw refused('give it `migrate`, which turns each state into one of this version, or `rebuild: true`')
}

/** Drops state and timers, and begins again at the start. Output is suppressed up to the old cursor. */
async function restarted(
  { store, fence, name }: Claimed,
  cursor: Position,
  progress: Progress,
  {
    version,
    shape,
    rebuild: how,
    holdsRetention,
  }: Pick<BeginSettings, 'shape'> & Required<Pick<BeginSettings, 'version' | 'rebuild' | 'holdsRetention'>>,
): Promise<Standing> {
  const { start, rebuild = cursor } = progress
  const { gap } = await store.read(start, { limit: 1 })
  if (gap !== undefined && how !== 'available') {
    throw new ProcessVersionError(
      name,
      progress.version,
      version,
      'it cannot be built again, because the log no longer has its beginning. Give it `migrate`, `rebuild: "available"`, or another name',
    )
  }
  const next: Progress = { version, shape, start, clocks: NO_TIME, rebuild }
  const process = { checkpoint: checkpointOf(next), reset: true, holdsRetention, state: [], timers: [] }
  await store.commit(fence, { expect: cursor, cursor: start, acknowledged: [], process })
  return { cursor: start, progress: next }
}

/**
 * Migrates the states in steps. A migrated state is a new change, so it comes after `until`; each commit moves `after`. So each state
 * is migrated once, however often this is interrupted.
 */
async function migrated(
  { store, fence, name, signal }: Claimed,
  cursor: Position,
  before: Progress,
  {
    version,
    migrate,
    holdsRetention,
  }: Required<Pick<BeginSettings, 'version' | 'migrate' | 'holdsRetention'>>,
): Promise<Progress> {
  const { processes } = store
  let progress = before
  let migration: Migration = before.migration ?? {
    from: before.version,
    after: await processes.start(),
    until: await processes.end(fence.name),
  }
  const save = async (next: Progress, state: readonly StateChange[]) => {
    const process = { checkpoint: checkpointOf(next), holdsRetention, state, timers: [] }
    await store.commit(fence, { expect: cursor, cursor, acknowledged: [], process })
    progress = next
  }
  for (;;) {
    signal.throwIfAborted()
    const { from, after, until } = migration
    const page = await processes.changes(fence.name, after, { limit: MIGRATED_STATES, until, present: true })
    let changed: StateChange[] = []
    let bytes = 0
    for (const { key, state, position } of page.changes) {
      const next = migratedState(name, key, state, (value) => migrate(value, from, key))
      const size = stateBytes({ key, state: next })
      if (bytes + size > MAX_EFFECT_BYTES) {
        await save({ ...progress, version, shape: undefined, migration }, changed)
        changed = []
        bytes = 0
      }
      migration = { from, after: position, until }
      if (next === state) continue
      changed.push({ key, state: next })
      bytes += size
    }
    migration = { from, after: page.position, until }
    await save(
      { ...progress, version, shape: undefined, migration: page.isEnd ? undefined : migration },
      changed,
    )
    if (page.isEnd) return progress
  }
}

function migratedState(
  name: string,
  key: string,
  state: string | null,
  migrate: (state: unknown) => unknown,
): string | null {
  try {
    const next = migrate(state === null ? null : JSON.parse(state))
    return next === null ? null : jsonOf(next, 'state')
  } catch (cause) {
    const problem = cause instanceof RefusedEffect ? cause.message : `\`migrate\` threw ${errorText(cause)}`
    throw new ProcessError(name, { key }, problem, { cause })
  }
}
