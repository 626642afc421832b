import { workerData } from 'node:worker_threads'
import { openForWriting } from './database.ts'
import { GroupCommit } from './group-commit.ts'
import type { WriterData } from './protocol.ts'
import { serve } from './serve.ts'

/** The writer thread: the only connection that writes. */
const { slots, ...options } = workerData as WriterData

serve(() => {
  const db = openForWriting(options)
  const group = new GroupCommit(db, slots)
  return { answer: writes => group.answer(writes), close: () => db.close() }
})
