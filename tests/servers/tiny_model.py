# SPDX-License-Identifier: Apache-2.0
"""tiny_model.py REAL OUT: a GGUF with tokenizer and chat template of a real model, and random, short, quick answers.

It is a llama of one layer that adds nothing: the next token depends on the last one only. Number 0 of each embedding is
1, so that number 0 of a token's row in the output says how likely that token is after any other.
"""
import sys

import gguf
import numpy

WIDE, HEADS = 64, 2
OFTEN = {'"': 1.0, "}": 1.0, '"}': 1.0, "}}": 1.0, '"}}': 1.0}  # what ends a string or an object in JSON
END = 1.2

reader, writer = gguf.GGUFReader(sys.argv[1]), gguf.GGUFWriter(sys.argv[2], "llama")
for name, field in reader.fields.items():
    if name.startswith("tokenizer."):
        writer.add_key_value(name, field.contents(), field.types[0], field.types[-1] if len(field.types) > 1 else None)
tokens = reader.fields["tokenizer.ggml.tokens"].contents()
writer.add_context_length(131072)
writer.add_embedding_length(WIDE)
writer.add_block_count(1)
writer.add_feed_forward_length(WIDE)
writer.add_head_count(HEADS)
writer.add_head_count_kv(HEADS)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_rope_dimension_count(WIDE // HEADS)
writer.add_vocab_size(len(tokens))

random = numpy.random.default_rng(1)
embedding, output = (random.standard_normal((len(tokens), WIDE)).astype(numpy.float16) / 10 for _ in range(2))
embedding[:, 0] = 1
output[:, 0] = [OFTEN.get(token, 0) for token in tokens]
output[reader.fields["tokenizer.ggml.eos_token_id"].contents(), 0] = END
writer.add_tensor("token_embd.weight", embedding)
writer.add_tensor("output.weight", output)
for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
    writer.add_tensor(f"{name}.weight", numpy.ones(WIDE, numpy.float32))
for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
    writer.add_tensor(f"blk.0.{name}.weight", numpy.zeros((WIDE, WIDE), numpy.float16))
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
