import type { Stats } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { SourceFile } from './document.ts'

/** Selects the files that are documents. Paths are relative to the indexed folder, with `/`. */
export interface FileFilter {
  /** Whether a file is a document. */
  include(relativePath: string): boolean
  /** Whether to read a folder. */
  enter(relativeFolder: string): boolean
}

/** A file found by a scan. */
export interface FoundFile extends SourceFile {
  /** Size in bytes. */
  readonly size: number
  /** Differs after each change that the file system reports. */
  readonly stamp: string
  /** Identity of the file on this machine: its device and its number there. */
  readonly inode: string
}

/** The result of a scan. */
export interface Scan {
  /** Sorted by path, folder by folder. */
  readonly files: readonly FoundFile[]
  /** Folders that could not be read, with unknown content. */
  readonly unreadable: readonly string[]
}

/**
 * Scans the folders, and stops at `limit` files. Does not follow symbolic links. Rejects when one of the root folders cannot
 * be read.
 */
export async function scanFolders(
  roots: readonly string[],
  filter: FileFilter,
  limit: number,
): Promise<Scan> {
  const files = new Map<string, FoundFile>()
  const unreadable: string[] = []

  async function scan(root: string, folder: string): Promise<void> {
    const path = join(root, folder)
    const entries = await readdir(path, { withFileTypes: true }).catch((error: unknown) => {
      // A moved or unmounted root must not delete all of its documents from the index.
      if (folder === '') throw unreadableRoot(path, error)
      if (!isMissing(error)) unreadable.push(path)
      return []
    })
    const names = entries
      .filter((entry) => entry.isFile() && filter.include(below(folder, entry.name)))
      .map(({ name }) => name)
      .toSorted()
    for (const file of await Promise.all(names.map((name) => findFile(root, below(folder, name))))) {
      if (file !== undefined && files.size < limit && !files.has(file.path)) files.set(file.path, file)
    }
    const folders = entries
      .filter((entry) => entry.isDirectory() && filter.enter(below(folder, entry.name)))
      .map(({ name }) => name)
      .toSorted()
    for (const name of folders) {
      if (files.size >= limit) return
      // Sequential, since the order decides which files exceed the limit.
      await scan(root, below(folder, name))
    }
  }

  for (const root of roots) {
    await scan(root, '')
  }
  return { files: [...files.values()], unreadable }
}

/** Returns the current state of a file; undefined if it does not exist. */
export async function findFile(root: string, relative: string): Promise<FoundFile | undefined> {
  const path = join(root, relative)
  const stats = await lstat(path).catch(() => undefined)
  if (stats === undefined || !stats.isFile()) return undefined
  const { mtimeMs, ctimeMs, size } = stats
  // `ctime` also changes when a file is replaced by one with the same `mtime`.
  return {
    root,
    relative,
    path,
    modified: mtimeMs,
    size,
    stamp: `${mtimeMs}:${ctimeMs}:${size}`,
    inode: inodeOf(stats),
  }
}

/** The identity of a file, whatever its path. */
export function inodeOf({ dev, ino }: Pick<Stats, 'dev' | 'ino'>): string {
  return `${dev}:${ino}`
}

/** Rejects when one of the root folders no longer exists. */
export async function checkRoots(roots: Iterable<string>): Promise<void> {
  for (const root of new Set(roots)) {
    await lstat(root).catch((error: unknown) => {
      throw unreadableRoot(root, error)
    })
  }
}

function unreadableRoot(root: string, error: unknown): Error {
  const reason = isMissing(error) ? 'there is no such folder' : error instanceof Error ? error.message : error
  return new Error(`the folder ${root} cannot be read: ${String(reason)}`, { cause: error })
}

/** Whether a file system call failed because the path does not exist. */
export function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ENOENT' || code === 'ENOTDIR'
}

const DOCUMENT_NAME = /\.(?:md|markdown|html?|txt)$/i
/** Documents without an extension, and the manifest of a package. */
const KNOWN_NAME =
  /^(?:(?:readme|licen[cs]e|copying|changelog|history|notice|authors)(?:[_-][\w-]*)?|package\.json)$/i

/** Markdown, HTML and text files, `package.json`, and files such as `LICENSE` without an extension; every folder but `node_modules` and those whose name begins with a dot. */
export const documentFiles: FileFilter = {
  include: (relativePath) => {
    const name = basename(relativePath)
    return (DOCUMENT_NAME.test(name) || KNOWN_NAME.test(name)) && !name.startsWith('.')
  },
  enter: (relativeFolder) => !/^(?:\.|node_modules$)/.test(basename(relativeFolder)),
}

function below(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`
}
