import { relative, sep } from 'node:path'
import { watch } from 'chokidar'
import type { FileFilter } from './files.ts'

/** How long changes are gathered before they are handed over together, in ms. */
const GATHERING = 50
/** How often folders are looked through when the system refuses to watch them, in ms. */
const POLLING = 10_000

/** What came of watching. */
export interface Watcher {
  close(): Promise<void>
}

/** Who is told of changes. */
export interface WatchListener {
  /** These files were added, changed or removed. */
  changed(files: readonly { readonly root: string; readonly relative: string }[]): void
  /** Nobody knows what changed: look through the folders. */
  lost(): void
}

/**
 * Watches the files of these folders that the filter lets pass. Resolves when every later change will be noticed.
 * Where the system runs out of watches the folders are looked through now and then instead.
 */
export async function watchFolders(
  roots: readonly string[],
  filter: FileFilter,
  listener: WatchListener,
): Promise<Watcher> {
  const dirty = new Map<string, { readonly root: string; readonly relative: string }>()
  let gathering: NodeJS.Timeout | undefined
  let polling: NodeJS.Timeout | undefined

  const place = (path: string) => {
    const root = roots.find((folder) => path === folder || path.startsWith(folder + sep))
    return root === undefined ? undefined : { root, relative: relative(root, path).split(sep).join('/') }
  }

  const watcher = watch([...roots], {
    ignoreInitial: true,
    followSymlinks: false,
    ignored: (path, stats) => {
      const found = place(path)
      if (stats === undefined || found === undefined || found.relative === '') return false
      if (stats.isDirectory()) return !filter.enter(found.relative)
      return !stats.isFile() || !filter.include(found.relative)
    },
  })
  watcher.on('all', (event, path) => {
    if (event !== 'add' && event !== 'change' && event !== 'unlink') return
    const found = place(path)
    if (found === undefined) return
    dirty.set(path, found)
    gathering ??= setTimeout(() => {
      gathering = undefined
      const files = [...dirty.values()]
      dirty.clear()
      listener.changed(files)
    }, GATHERING)
  })
  // Most often ENOSPC: too many watches for this system's settings.
  watcher.on('error', () => {
    polling ??= setInterval(() => listener.lost(), POLLING).unref()
  })
  await new Promise<void>((resolve) => watcher.once('ready', resolve))
  return {
    async close() {
      clearTimeout(gathering)
      clearInterval(polling)
      await watcher.close()
    },
  }
}
