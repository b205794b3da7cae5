//! Status variables of parts of MariaDB that do not exist here. Tools read them. Their values are those of a
//! MariaDB that does not use these parts.

/// Values, and the variables that have them.
#[rustfmt::skip]
pub(super) const ABSENT: &[(&str, &[&str])] = &[
    // Storage engines Aria and MyISAM, with their key caches.
    ("0", &[
        "Aria_pagecache_blocks_not_flushed", "Aria_pagecache_blocks_unused", "Aria_pagecache_blocks_used",
        "Aria_pagecache_read_requests", "Aria_pagecache_reads", "Aria_pagecache_write_requests",
        "Aria_pagecache_writes", "Aria_transaction_log_syncs", "Key_blocks_not_flushed",
        "Key_blocks_unused", "Key_blocks_used", "Key_blocks_warm", "Key_read_requests", "Key_reads",
        "Key_write_requests", "Key_writes",
    ]),
    // The query cache.
    ("0", &[
        "Qcache_free_blocks", "Qcache_free_memory", "Qcache_hits", "Qcache_inserts",
        "Qcache_lowmem_prunes", "Qcache_not_cached", "Qcache_queries_in_cache", "Qcache_total_blocks",
    ]),
    // INSERT DELAYED.
    ("0", &[
        "Delayed_errors", "Delayed_insert_threads", "Delayed_writes", "Not_flushed_delayed_rows",
    ]),
    // Index condition pushdown, multi-range reads and reads by position after a sort: an engine returns whole
    // rows.
    ("0", &[
        "Handler_discover", "Handler_icp_attempts", "Handler_icp_match", "Handler_mrr_init",
        "Handler_mrr_key_refills", "Handler_mrr_rowid_refills", "Handler_read_retry", "Handler_read_rnd",
        "Handler_read_rnd_deleted", "Select_range_check",
    ]),
    // Two-phase commits between engines and the binary log, and their log: a transaction is one record.
    ("0", &[
        "Tc_log_max_pages_used", "Tc_log_page_size", "Tc_log_page_waits", "Handler_prepare",
    ]),
    // InnoDB's adaptive hash index, change buffer, doublewrite buffer, undo logs as files, defragmentation.
    ("0", &[
        "Innodb_adaptive_hash_hash_searches", "Innodb_adaptive_hash_non_hash_searches",
        "Innodb_dblwr_pages_written", "Innodb_dblwr_writes", "Innodb_ibuf_discarded_delete_marks",
        "Innodb_ibuf_discarded_deletes", "Innodb_ibuf_discarded_inserts", "Innodb_ibuf_free_list",
        "Innodb_ibuf_merged_delete_marks", "Innodb_ibuf_merged_deletes", "Innodb_ibuf_merged_inserts",
        "Innodb_ibuf_merges", "Innodb_ibuf_segment_size", "Innodb_ibuf_size", "Innodb_mem_adaptive_hash",
        "Innodb_undo_truncations", "Innodb_defragment_compression_failures", "Innodb_defragment_failures",
        "Innodb_defragment_count",
        "Innodb_buffer_pool_pages_split", "Innodb_buffer_pool_wait_free",
    ]),
    // Rotation of encryption keys, and compression by the file system.
    ("0", &[
        "Innodb_num_page_compressed_trim_op", "Innodb_encryption_rotation_pages_read_from_cache",
        "Innodb_encryption_rotation_pages_read_from_disk", "Innodb_encryption_rotation_pages_modified",
        "Innodb_encryption_rotation_pages_flushed", "Innodb_encryption_rotation_estimated_iops",
        "Innodb_encryption_n_merge_blocks_decrypted", "Innodb_encryption_n_merge_blocks_encrypted",
        "Innodb_encryption_n_rowlog_blocks_decrypted", "Innodb_encryption_n_rowlog_blocks_encrypted",
        "Innodb_encryption_n_temp_blocks_decrypted", "Innodb_encryption_n_temp_blocks_encrypted",
        "Innodb_encryption_num_key_requests", "Innodb_num_pages_decrypted", "Innodb_num_pages_encrypted",
    ]),
    // An LRU list of the buffer pool: pages that are used are marked.
    ("0", &[
        "Innodb_buffer_pool_pages_made_not_young", "Innodb_buffer_pool_pages_made_young",
        "Innodb_buffer_pool_pages_old", "Innodb_buffer_pool_read_ahead_rnd",
        "Innodb_buffer_pool_read_ahead_evicted",
    ]),
    // Locks of tables besides metadata locks.
    ("0", &[
        "Table_locks_immediate", "Table_locks_waited",
    ]),
    // A cache of idle threads, and a limit of the table cache.
    ("0", &[
        "Slow_launch_threads", "Table_open_cache_overflows", "Threads_cached",
    ]),
    // Checks of connections by TCP wrappers, and of addresses of clients.
    ("0", &[
        "Connection_errors_peer_address", "Connection_errors_select", "Connection_errors_tcpwrap",
    ]),
    // Streams and libraries of plugins.
    ("0", &[
        "Innodb_truncated_status_writes", "Open_streams", "Opened_plugin_libraries",
    ]),
    // Instruments of the performance schema with a bound.
    ("0", &[
        "Performance_schema_cond_classes_lost", "Performance_schema_cond_instances_lost",
        "Performance_schema_file_classes_lost", "Performance_schema_file_handles_lost",
        "Performance_schema_file_instances_lost", "Performance_schema_index_stat_lost",
        "Performance_schema_locker_lost", "Performance_schema_memory_classes_lost",
        "Performance_schema_metadata_lock_lost", "Performance_schema_mutex_classes_lost",
        "Performance_schema_mutex_instances_lost", "Performance_schema_nested_statement_lost",
        "Performance_schema_prepared_statements_lost", "Performance_schema_program_lost",
        "Performance_schema_rwlock_classes_lost", "Performance_schema_rwlock_instances_lost",
        "Performance_schema_socket_classes_lost", "Performance_schema_socket_instances_lost",
        "Performance_schema_stage_classes_lost", "Performance_schema_statement_classes_lost",
        "Performance_schema_table_handles_lost", "Performance_schema_table_instances_lost",
        "Performance_schema_table_lock_stat_lost", "Performance_schema_thread_classes_lost",
        "Performance_schema_thread_instances_lost",
    ]),
    // Compressed columns, changes of statements without transactions, keys of delayed writes, system versions
    // and periods, spatial data.
    ("0", &[
        "Column_compressions", "Column_decompressions", "Binlog_stmt_cache_disk_use", "Binlog_stmt_cache_use",
        "Feature_delay_key_write", "Feature_application_time_periods", "Feature_system_versioning",
        "Feature_gis",
    ]),
    // External locks of tables, caches of subqueries' results, a thread pool of MariaDB's kind.
    ("0", &[
        "Handler_external_lock", "Subquery_cache_hit", "Subquery_cache_miss", "Threadpool_idle_threads",
        "Threadpool_threads",
    ]),
    // The time of processors by statement is not measured.
    ("0.000000", &[
        "Cpu_time",
    ]),
    // Galera.
    ("0", &[
        "wsrep", "wsrep_applier_thread_count", "wsrep_cluster_size", "wsrep_local_bf_aborts",
        "wsrep_rollbacker_thread_count", "wsrep_thread_count",
    ]),
    ("18446744073709551615", &[
        "wsrep_cluster_conf_id", "wsrep_local_index",
    ]),
    ("OFF", &[
        "wsrep_connected", "wsrep_ready",
    ]),
    ("", &[
        "wsrep_cluster_capabilities", "wsrep_cluster_state_uuid", "wsrep_provider_capabilities",
        "wsrep_provider_name", "wsrep_provider_vendor", "wsrep_provider_version",
    ]),
    ("Disconnected", &[
        "wsrep_cluster_status",
    ]),
    // Replication by RPL_STATUS of MySQL 4.
    ("AUTH_MASTER", &[
        "Rpl_status",
    ]),
    // Algorithms of page compression besides zlib.
    ("OFF", &[
        "Innodb_have_lz4", "Innodb_have_lzo", "Innodb_have_lzma", "Innodb_have_bzip2",
        "Innodb_have_snappy",
    ]),
    ("1", &[
        "Table_open_cache_active_instances",
    ]),
];
