import { randomUUID } from 'node:crypto'
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  realpathSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** Linux's numbers of file systems that several machines share (`man 2 statfs`). */
const NETWORK_FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xfe534d42: 'SMB',
  0xff534d42: 'CIFS',
  0x01021997: '9P',
  0x5346414f: 'AFS',
  0x6b414653: 'AFS',
  0x00c36400: 'Ceph',
  0x0bd00bd0: 'Lustre',
  0x47504653: 'GPFS',
}

/**
 * The name of the network file system that a file is on; undefined if it is on none, and if that is not known: FUSE may
 * be both, and only Linux has stable numbers.
 */
export function networkFileSystemOf(file: string): string | undefined {
  if (process.platform === 'win32') return /^[\\/]{2}[^\\/?.]/.test(file) ? 'a network share' : undefined
  if (process.platform !== 'linux') return undefined
  try {
    return NETWORK_FILE_SYSTEMS[statfsSync(dirname(file)).type >>> 0]
  } catch {
    // The folder is missing or out of reach. SQLite reports which.
    return undefined
  }
}

/** Whether there is a folder at this path. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    // Missing or out of reach. SQLite reports which.
    return false
  }
}

/** Whether a file has a write-ahead log beside it. */
export function hasWal(file: string): boolean {
  try {
    return existsSync(`${realpathSync(file)}-wal`)
  } catch {
    // There is no file yet, or it is out of reach. SQLite reports which.
    return false
  }
}

/** Whether nothing can be written to the folder of a file, since its file system is mounted read-only. */
export function isOnReadOnlyFileSystem(file: string): boolean {
  try {
    accessSync(dirname(file), constants.W_OK)
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EROFS'
  }
}

/**
 * Creates an empty file with mode 0600 unless there is one. SQLite gives the mode to the -wal and -shm files too.
 *
 * The file is closed before it gets its name. A close gives up all POSIX locks that the process has on a file, those of
 * SQLite connections in other threads included.
 */
export function createPrivateFile(file: string): void {
  if (existsSync(file)) return
  const unnamed = `${file}-${randomUUID()}`
  try {
    closeSync(openSync(unnamed, 'wx', 0o600))
  } catch {
    // The folder is missing or cannot be written. SQLite reports which.
    return
  }
  try {
    linkSync(unnamed, file)
  } catch {
    // Another process was faster, or the file system has no links, and then no modes either: SQLite creates the file.
  } finally {
    // Another process may have removed it: see `anotherPathOf`.
    rmSync(unnamed, { force: true })
  }
}

/** The size of a part of a file that is written again at once, in bytes. */
const PART = 1024 * 1024

/**
 * Writes over a file with what it has, and syncs it. A sync alone does not help after one that failed: the system takes for synced what it could
 * not write. The caller keeps others from writing.
 */
export function writeAgain(file: string): void {
  const descriptor = openSync(file, 'r+')
  try {
    const part = Buffer.allocUnsafe(PART)
    for (let at = 0; ;) {
      const length = readSync(descriptor, part, 0, PART, at)
      if (length === 0) break
      at += writeSync(descriptor, part, 0, length, at)
    }
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** The end of a name that a file has until it is complete, and for a moment beside its own: a UUID, or that of a copy of a log. */
const TEMPORARY_NAME = /^-(?:[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}|unfinished)$/

/** Advice for a file that can be reached by another path. */
export const ONE_PATH =
  'SQLite keeps locks and the write-ahead log by path, so writes through another path would be lost. Use one path, and mount or link the ' +
  'folder that has the file'

/**
 * The way in which a file can be reached by another path, as the predicate of a sentence about it; undefined if there is none. Symbolic
 * links do not count, since SQLite resolves them.
 */
export function anotherPathOf(file: string): string | undefined {
  try {
    const path = realpathSync(file)
    if (statSync(path).nlink > 1) removeTemporaryNames(path)
    if (statSync(path).nlink > 1) return 'has another name, since it is a hard link'
    return isMountPoint(path) ? 'is itself mounted here' : undefined
  } catch {
    // There is no file yet, or it is out of reach. SQLite reports which.
    return undefined
  }
}

/** Removes names that a process has given to a file to create it, and is about to remove or has left in a crash. */
function removeTemporaryNames(path: string): void {
  const [folder, name] = [dirname(path), basename(path)]
  const { dev, ino } = statSync(path)
  for (const other of readdirSync(folder)) {
    if (!other.startsWith(name) || !TEMPORARY_NAME.test(other.slice(name.length))) continue
    const found = statSync(join(folder, other), { throwIfNoEntry: false })
    if (found?.dev === dev && found.ino === ino) rmSync(join(folder, other), { force: true })
  }
}

/** Whether a file is the root of a mount, as in a container that has the file alone. Only Linux says so. */
function isMountPoint(path: string): boolean {
  if (process.platform !== 'linux') return false
  // Characters such as spaces are octal numbers there.
  const mountPoint = (line: string) =>
    (line.split(' ')[4] ?? '').replaceAll(/\\(\d{3})/g, (_, code: string) =>
      String.fromCodePoint(Number.parseInt(code, 8)),
    )
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .some((line) => mountPoint(line) === path)
}

/** Which file was at a path, to notice that it was removed or replaced. */
export class FileIdentity {
  readonly #path: string
  readonly #device: bigint | undefined
  readonly #inode: bigint | undefined

  constructor(path: string) {
    this.#path = path
    const found = stat(path)
    this.#device = found?.dev
    this.#inode = found?.ino
  }

  /** The size of the file in bytes; undefined if another file is at the path, or none. It takes 3 µs. */
  size(): number | undefined {
    const found = stat(this.#path)
    if (found === undefined || found.dev !== this.#device || found.ino !== this.#inode) return undefined
    return Number(found.size)
  }
}

function stat(path: string) {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false })
  } catch {
    // Out of reach.
    return undefined
  }
}
