import { basename, dirname, relative, sep } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { CorpusEntity } from './corpus.ts'
import { alone, type Entities, LOCATED, type LocatedDocument, nameOf, toLocated } from './entities.ts'
import { isCopied, namesOf, normalName } from './names.ts'

/** Maximum number of documents with a name that are looked at. */
const MAX_DOCUMENTS = 2_000

/** Maximum number of documents of a thing. */
const MAX_ENTITY_DOCUMENTS = 100

/** The kinds of things that have a name, the best first. A folder is introduced by a README or a manifest. */
const FORMS = ['introduced folder', 'introduction', 'folder', 'title', 'file name'] as const

/** A folder or a document with a name. */
interface NamedThing {
  readonly form: (typeof FORMS)[number]
  /** Whether it is in a folder of copies, such as `node_modules` of another package. */
  readonly copied: boolean
  /** Whether its whole name has a scope that the name has not. */
  readonly scoped: boolean
  /** Path within the corpus's folder, from `/`. */
  readonly place: string
  entity(): CorpusEntity
}

/** Finds the things of a name. */
export class NamedThings {
  readonly #entities: Entities
  readonly #named: StatementSync

  constructor(database: DatabaseSync, entities: Entities) {
    this.#entities = entities
    // The number of documents is limited, and introductions identify a thing best.
    this.#named = database.prepare(
      `SELECT ${LOCATED} FROM corpus_names JOIN corpus_files ON id = document
       WHERE name = ? AND visible = 1
       ORDER BY kind NOT IN ('readme', 'manifest'), path LIMIT ${MAX_DOCUMENTS}`,
    )
  }

  /** See `Corpus.named`. */
  find(name: string, limit: number): CorpusEntity[] {
    const wanted = normalName(name)
    const things = new Map<string, NamedThing>()
    for (const file of this.#named.all(wanted).map(toLocated)) {
      const folder = innermostNamed(wanted, file)
      const path = folder ?? file.path
      if (things.has(path) || (folder === undefined && !isNamed(wanted, file))) continue
      things.set(
        path,
        folder === undefined ? this.#document(wanted, file) : this.#folder(wanted, folder, file),
      )
    }
    const found = new Map<string, CorpusEntity>()
    for (const thing of [...things.values()].toSorted(byFitness)) {
      if (found.size >= limit) break
      const entity = thing.entity()
      if (!found.has(entity.url)) found.set(entity.url, entity)
    }
    return [...found.values()]
  }

  #folder(wanted: string, folder: string, file: LocatedDocument): NamedThing {
    const place = relative(file.root, folder)
    return {
      form: this.#entities.isIntroduced(folder) ? 'introduced folder' : 'folder',
      copied: isCopied(place),
      scoped: normalName(nameOf(folder)) !== wanted,
      place: sep + place,
      entity: () => this.#entities.in(folder, file, MAX_ENTITY_DOCUMENTS),
    }
  }

  #document(wanted: string, file: LocatedDocument): NamedThing {
    const { place } = file
    const introduces = file.kind === 'manifest' || file.kind === 'readme'
    const isTitle = normalName(file.title) === wanted
    return {
      form: isTitle ? (introduces ? 'introduction' : 'title') : 'file name',
      copied: isCopied(place),
      scoped: false,
      place,
      entity: () => (isTitle && introduces ? this.#entities.around(file, MAX_ENTITY_DOCUMENTS) : alone(file)),
    }
  }
}

/** Whether the document itself has the name, rather than a part of a page's URL. */
function isNamed(wanted: string, { title, place }: LocatedDocument): boolean {
  const [file = ''] = place.split('/').slice(-1)
  return namesOf(`/${file}`, title).has(wanted)
}

/** The innermost parent folder with the name. */
function innermostNamed(wanted: string, { root, path }: LocatedDocument): string | undefined {
  for (let folder = dirname(path); folder.startsWith(root + sep); folder = dirname(folder)) {
    if (normalName(basename(folder)) === wanted || normalName(nameOf(folder)) === wanted) return folder
  }
  return undefined
}

/** Best first; equally good ones by their depth, and by their path, so that the order is always the same. */
function byFitness(a: NamedThing, b: NamedThing): number {
  return (
    FORMS.indexOf(a.form) - FORMS.indexOf(b.form) ||
    Number(a.copied) - Number(b.copied) ||
    Number(a.scoped) - Number(b.scoped) ||
    depth(a) - depth(b) ||
    (a.place < b.place ? -1 : 1)
  )
}

function depth({ place }: NamedThing): number {
  return place.split(/[/\\]/).length
}
