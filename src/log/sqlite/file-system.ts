import { randomUUID } from 'node:crypto'
import { closeSync, existsSync, linkSync, openSync, statfsSync, statSync, unlinkSync } from 'node:fs'
import { dirname } from 'node:path'

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
 * The name of the network file system that a file is on; undefined where it is on none, and where that is not known: FUSE may
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
    unlinkSync(unnamed)
  }
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

  /** The size of the file in bytes; undefined where another file is at the path, or none. It takes 3 µs. */
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
