import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { scratchFolder } from '../log/sqlite/scratch.ts'
import { idsOf, readAll } from '../log/conformance/fixture.ts'

/** The unit in which the system syncs a file, in bytes. */
const PAGE = 4_096

interface Line {
  readonly appended?: string
  readonly failed?: string
  readonly message?: string
  readonly ended?: boolean
}

/** Starts a program of the folder `disk`. It is killed after the test. */
function start(
  [program, ...args]: readonly [program: string, ...args: string[]],
  env: Readonly<Record<string, string>> = {},
  command: readonly string[] = [],
) {
  const path = join(import.meta.dirname, 'disk', program)
  const line = [...command, process.execPath, '--conditions=rivulet-source', path, ...args]
  const child = spawn(line[0] ?? '', line.slice(1), {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** Compiles a library that makes syncs fail. */
function failingSync(folder: string): string {
  const shim = join(folder, 'failing-sync.so')
  const source = join(import.meta.dirname, 'disk/failing-sync.c')
  execFileSync('gcc', ['-shared', '-fPIC', '-o', shim, source, '-ldl'])
  return shim
}

/** A process that records until its disk fails. */
function recording(command: readonly string[], file: string, env: Readonly<Record<string, string>> = {}) {
  const child = start(['recording-process.ts', file], env, command)
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const appended: string[] = []
  return {
    child,
    appended,
    /** The next line that is wanted. */
    async until(isWanted: (line: Line) => boolean): Promise<Line> {
      for (;;) {
        const { value, done } = await lines.next()
        if (done === true) throw new Error('the process has ended')
        const line: Line = JSON.parse(value)
        if (line.appended !== undefined) appended.push(line.appended)
        if (isWanted(line)) return line
      }
    },
  }
}

/** What is in the log of a file. */
async function recorded(file: string): Promise<readonly string[]> {
  const store = sqliteStore(file)
  const log = await openLog(store)
  try {
    return idsOf(await readAll(store))
  } finally {
    await log.close()
  }
}

/** A folder with a log, and the programs that write it while its disk fails and afterwards. */
function failingDisk() {
  const folder = scratchFolder()
  const [fails, writes] = [join(folder, 'fails'), join(folder, 'writes')]
  const shim = failingSync(folder)
  /** Runs the program until it prints what it has found, and kills it. */
  const run = async (phase: string): Promise<unknown> => {
    const env = { LD_PRELOAD: shim, FAILING_SYNC: fails, ...(phase === 'go-on' && { WAL_WRITES: writes }) }
    const child = start(['failing-process.ts', phase, folder], env)
    const [line] = await once(createInterface(child.stdout), 'line')
    child.kill('SIGKILL')
    await once(child, 'exit')
    return JSON.parse(line)
  }
  return { folder, writes, run }
}

/**
 * What a power cut leaves of a -wal file. A sync that fails marks the pages of a file as synced, although they are not on the disk. Those that
 * nobody writes again are what they were at the last sync.
 */
function afterPowerCut(folder: string, writes: string): Buffer {
  const [synced, failed, end] = ['synced', 'failed', 'end'].map((name) => readFileSync(join(folder, name)))
  if (synced === undefined || failed === undefined || end === undefined) throw new RangeError('three files')
  const written = readFileSync(writes, 'utf8')
    .split('\n')
    .map((line) => line.split(' ').map(Number))
  const isWritten = (from: number) =>
    written.some(([offset = 0, length = 0]) => offset < from + PAGE && from < offset + length)
  const left = Buffer.from(end)
  for (let from = 0; from < Math.min(end.length, failed.length); from += PAGE) {
    const [before, after] = [synced, failed].map((content) => content.subarray(from, from + PAGE))
    if (before === undefined || after === undefined || before.equals(after) || isWritten(from)) continue
    left.fill(0, from, from + PAGE)
    before.copy(left, from)
  }
  return left
}

describe('a commit whose sync fails', () => {
  it('is the last one of its open log: nothing that comes after it is stored, since it could be lost', async () => {
    const { run } = failingDisk()
    const refused = expect.stringMatching(/^LogFileError: .*close the log, and open it again/)
    expect(await run('fail-and-write')).toEqual({
      failure: expect.stringContaining('its disk failed'),
      writes: {
        effect: refused,
        append: refused,
        cursor: refused,
        process: refused,
        claim: refused,
        inbox: refused,
        retention: refused,
      },
      read: 5,
      effects: 0,
      reopened: 'stored',
    })
  })

  it('is noticed: no sync is left to a commit of a cursor, where SQLite ignores a checkpoint that fails', async () => {
    expect(await failingDisk().run('checkpoint')).toEqual({ hasFailed: false, append: 'stored' })
  })

  it('takes nothing with it that the next process appends, after a power cut', async () => {
    const { folder, writes, run } = failingDisk()
    expect(await run('fail')).toEqual({ failure: expect.stringContaining('its disk failed') })
    await run('go-on')
    const file = join(folder, 'cut.db')
    writeFileSync(`${file}-wal`, afterPowerCut(folder, writes))

    const ids = await recorded(file)
    expect(ids.filter((id) => id.startsWith('before'))).toHaveLength(20)
    expect(ids.filter((id) => id.startsWith('after'))).toHaveLength(20)
  })
})

describe('a recorder whose disk fails', () => {
  it('ends with the first sync that fails, and what it has reported as appended is there', async () => {
    const folder = scratchFolder()
    const [flag, file] = [join(folder, 'fails'), join(folder, 'log.db')]
    const shim = failingSync(folder)
    const { child, appended, until } = recording([], file, { LD_PRELOAD: shim, FAILING_SYNC: flag })
    await until(() => appended.length === 20)
    writeFileSync(flag, '')
    expect(await until(({ failed }) => failed !== undefined)).toMatchObject({
      failed: 'LogFileError',
      retryable: false,
      message: expect.stringContaining('its disk failed'),
    })
    // The disk works again, and would take what comes. But what the system had not synced may be gone from its memory.
    rmSync(flag)
    child.stdin.write('go on\n')
    await until(({ ended }) => ended === true)

    const ids = await recorded(file)
    expect(ids.slice(0, appended.length)).toEqual(appended)
    expect(ids.length).toBeLessThanOrEqual(appended.length + 1)
    expect(ids.filter((id) => id.startsWith('after'))).toEqual([])
  })

  it('ends when the disk is full, and what it has reported as appended is there', async () => {
    const folder = scratchFolder()
    const small = join(folder, 'small')
    const copy = join(folder, 'copy')
    mkdirSync(small)
    mkdirSync(copy)
    // The file system is gone with the process.
    const inside = `mount -t tmpfs -o size=2m none "$1" && folder="$1" && shift && to="$1" && shift && "$@"; cp "$folder"/log.db* "$to"`
    const { child, appended, until } = recording(
      ['unshare', '-Urm', 'sh', '-c', inside, 'sh', small, copy],
      join(small, 'log.db'),
    )
    const { failed, message } = await until((line) => line.failed !== undefined)
    expect(failed).toBe('LogFileError')
    expect(message).toContain('the disk is full')
    child.stdin.write('go on\n')
    await until(({ ended }) => ended === true)
    if (child.exitCode === null) await once(child, 'exit')

    expect(appended.length).toBeGreaterThan(10)
    expect(existsSync(join(copy, 'log.db'))).toBe(true)
    const ids = await recorded(join(copy, 'log.db'))
    expect(ids.slice(0, appended.length)).toEqual(appended)
    expect(ids.filter((id) => id.startsWith('after'))).toEqual([])
  })
})
