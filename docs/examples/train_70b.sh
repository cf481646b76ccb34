#!/bin/bash
# A Megatron-LM launch as people write it: variables, arrays, line continuations.
TP=8
PP=8
NODES=${NODES:-16}
MODEL_ARGS=(
  --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672
  --num-attention-heads 64 --group-query-attention --num-query-groups 8
  --position-embedding-type rope --normalization RMSNorm --swiglu
  --disable-bias-linear --untie-embeddings-and-output-weights
  --attention-dropout 0 --hidden-dropout 0 --vocab-size 128256
)
TRAINING_ARGS="--seq-length 8192 --max-position-embeddings 8192 \
  --micro-batch-size 1 --global-batch-size 512 --bf16 \
  --recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
torchrun --nnodes "$NODES" --nproc-per-node 8 pretrain_gpt.py \
  "${MODEL_ARGS[@]}" $TRAINING_ARGS \
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size ${PP} \
  --sequence-parallel --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
