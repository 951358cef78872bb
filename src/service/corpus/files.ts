import { lstat, readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { SourceFile } from './document.ts'

/** Which files of a folder are documents. Paths are relative to the folder that is indexed, with `/`. */
export interface FileFilter {
  /** Whether a file is a document. */
  include(relativePath: string): boolean
  /** Whether to look into a folder. */
  enter(relativeFolder: string): boolean
}

/** A file as it was found. */
export interface FoundFile extends SourceFile {
  /** Bytes. */
  readonly size: number
  /** Another one after each change that the file system can tell. */
  readonly stamp: string
}

/** What is there now. */
export interface Scan {
  /** In the order of their paths, folder by folder. */
  readonly files: readonly FoundFile[]
  /** Folders that could not be read, so that nobody knows what is in them. */
  readonly unreadable: readonly string[]
}

/**
 * Looks through the folders, and stops when `limit` files have been found. Symbolic links are not followed. Fails when
 * one of the folders itself cannot be read.
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
      // A folder that was moved, or is not mounted, does not mean that all of its documents were deleted.
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
      // One after the other: the order decides which files the limit leaves out.
      await scan(root, below(folder, name))
    }
  }

  for (const root of roots) {
    await scan(root, '')
  }
  return { files: [...files.values()], unreadable }
}

/** The file as it is now, or undefined where there is none. */
export async function findFile(root: string, relative: string): Promise<FoundFile | undefined> {
  const path = join(root, relative)
  const stats = await lstat(path).catch(() => undefined)
  if (stats === undefined || !stats.isFile()) return undefined
  const { mtimeMs, ctimeMs, size } = stats
  // `ctime` tells of a file that was put in another's place together with its old `mtime`.
  return { root, relative, path, modified: mtimeMs, size, stamp: `${mtimeMs}:${ctimeMs}:${size}` }
}

/** Fails when one of the folders itself is no longer there. */
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

/** Whether a file system call failed because there is nothing at the path. */
export function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ENOENT' || code === 'ENOTDIR'
}

const DOCUMENT_NAME = /\.(?:md|markdown|html?|txt)$/i

/** Markdown, HTML and text files; every folder but `node_modules` and those whose name begins with a dot. */
export const documentFiles: FileFilter = {
  include: (relativePath) => DOCUMENT_NAME.test(relativePath) && !basename(relativePath).startsWith('.'),
  enter: (relativeFolder) => !/^(?:\.|node_modules$)/.test(basename(relativeFolder)),
}

function below(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`
}
